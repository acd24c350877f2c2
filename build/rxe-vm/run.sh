#!/bin/bash
# Runs COMMAND in a throw-away virtual machine with Debian's kernel, streams its stdout and stderr, and exits with its status. Without
# COMMAND: a shell on this terminal. The repository is shared with the guest under the path that it has here. README.md beside it says
# what the guest has.
#
# usage: build/rxe-vm/run.sh [-t SECONDS] [-a kvm|tcg] [-l FILE] [--] [COMMAND [ARG...]]
#   -t  ends the guest after so long; exit 124 (default: 120, for a shell no limit)
#   -a  only this accelerator (default: kvm where it boots, else tcg, which emulates)
#   -l  keeps the guest's console log in FILE
# Exit 125: no guest, or it died before COMMAND ended.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=${here%/build/rxe-vm}
cache=$root/.cache/rxe-vm
PATH=$PATH:/usr/sbin:/sbin

say() { echo "rxe-vm: $*" >&2; }
die() { say "$*"; exit 125; }
usage() { sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 125; }

limit='' accels=() log=''
while getopts 't:a:l:h' option; do
    case $option in
    t) limit=$OPTARG ;;
    a) accels=("$OPTARG") ;;
    l) log=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[[ ${limit:-1} =~ ^[1-9][0-9]*$ ]] || die "-t $limit: not a number of seconds above 0"
[[ ${accels[0]:-tcg} =~ ^(kvm|tcg)$ ]] || die "-a ${accels[0]}: not an accelerator; kvm or tcg"
if [ $# -eq 0 ]; then
    { [ -t 0 ] && [ -t 1 ]; } || die "a shell needs a terminal; give a command (make shell-rxe COMMAND='...')"
    terminal=$(stty -g)
else
    terminal=''
    limit=${limit:-120}
fi
command -v qemu-system-x86_64 >/dev/null || die "qemu-system-x86_64 is not installed; build/setup.sh test-rxe says how"

qemu=''
cats=()
# stop ends the guest, if it still is there. Not by TERM: QEMU does not hear it while it waits for somebody to read its output.
stop() {
    kill -KILL "$qemu" 2>/dev/null || true
    wait "$qemu" || true
    qemu=''
}

run=$(mktemp -d)
finish() {
    [ -z "$qemu" ] || stop
    [ -z "$terminal" ] || stty "$terminal" || true
    rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$here/image.sh" || exit 125
if [ ${#accels[@]} -eq 0 ]; then
    accels=(tcg tcg) # twice, for an emulated boot dies now and then
    [ ! -w /dev/kvm ] || [ -e "$cache/kernel/no-kvm" ] || accels=(kvm tcg tcg)
fi

# What this run tells the guest's init.
mkdir "$run/guest"
log=${log:-$run/console}
(($# == 0)) || printf '%q ' "$@" >"$run/guest/command"
echo "$root" >"$run/guest/share"
case $PWD/ in "$root"/*) echo "$PWD" ;; *) echo "$root" ;; esac >"$run/guest/folder"
[ -z "$terminal" ] || stty size >"$run/guest/size"

cpus=$(nproc)
machine=(
    -nodefaults -no-user-config -display none -no-reboot
    # Not microvm: without HPET and ACPI timer a part of its boots hangs while it calibrates the TSC.
    -machine pc -cpu "max,la57=off" -smp $((cpus < 4 ? cpus : 4)) -m 2048
    -kernel "$cache/kernel/vmlinux" -initrd "$cache/initrd"
    -append "console=ttyS0 quiet panic=-1 reboot=t mitigations=off audit=0 nowatchdog"
    -virtfs "local,path=${root//,/,,},mount_tag=share,security_model=none,multidevs=remap"
    -virtfs "local,path=$run/guest,mount_tag=run,security_model=none,multidevs=remap"
)

# boot ACCEL: starts a guest and returns when it is ready (0) or never will be. Its serial ports: the console's log, the command's
# stdout and stderr (through cat, for ours may be what no path opens, a socket), and word of its state.
boot() {
    local accel=$1 within=150 out err stdout
    [ "$accel" = tcg ] || within=30
    [ "$accel" = kvm ] || accel=tcg,thread=multi
    exec {out}> >(exec cat)
    cats=($!)
    exec {err}> >(exec cat >&2)
    cats+=($!)
    stdout=file:/dev/fd/$out
    [ -z "$terminal" ] || stdout=stdio
    exec {state}< <(
        [ -n "$terminal" ] || exec </dev/null
        exec setpriv --pdeathsig KILL qemu-system-x86_64 -accel "$accel" "${machine[@]}" -serial "file:$log" -serial "$stdout" \
            -serial "file:/dev/fd/$err" -serial file:/dev/fd/3 3>&1 1>&"$out" 2>"$run/qemu"
    )
    qemu=$!
    exec {out}>&- {err}>&-
    read -r -t "$within" -u "$state" _ uptime && return
    end
    return 1
}

# end stops the guest and lets all its output through.
end() {
    stop
    wait "${cats[@]}" || true
}

up=''
for accel in "${accels[@]}"; do
    if boot "$accel"; then
        up=yes
        break
    fi
    say "$accel boots no guest: $(cat "$run/qemu" "$log" 2>/dev/null | tail -n 1)"
    [ "$accel" != kvm ] || : >"$cache/kernel/no-kvm" # it may hang there, so no later run tries
done
[ -n "$up" ] || die "the guest does not come up"
say "booted in $uptime s ($accel)"

code=0
read -r ${limit:+-t "$limit"} -u "$state" _ status || code=$?
if [ "$code" -gt 128 ]; then
    end
    say "ended after $limit s, the limit"
    exit 124
fi
if [ "$code" -ne 0 ]; then
    end
    tail -n 30 "$log" >&2
    die "the guest died before the command ended"
fi
# It powers off by itself: wait for the end of its output.
read -r -t 10 -u "$state" || true
end
exit "$status"
