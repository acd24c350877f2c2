#!/bin/bash
# Does what a stranger does, on a machine that has nothing: a bare Debian root by debootstrap, Go added, Dockerfile.rocm built on it by
# buildah, then make demo, the guard, fabric's tests and a smoke test inside, as a user without rights. It finds the install steps that a
# developer's machine hides.
# Needs root and Linux (elsewhere it says so and skips). The bare root is kept in .cache/fresh; all else goes at the end.
# usage: build/fresh.sh
set -euo pipefail
cd "$(dirname "$0")/.."
suite=bookworm

if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
    echo "test-fresh: skipped: it needs root on Linux, for debootstrap and chroot; run it as root, or let CI run it"
    exit 0
fi
build/setup.sh fresh

work=$(mktemp -d)
b() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
finish() {
    b rm --all >/dev/null 2>&1 || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT
say() { echo "test-fresh: $* ($SECONDS s)"; }

# The host's own package source, proxy and certificates: a stranger's machine reaches what this one does.
uri() { apt-get indextargets --format "\$(CODENAME) \$(REPO_URI)" 2>/dev/null | awk -v s="$1" '$1 == s {print $2; exit}'; }
mirror=$(uri $suite)
mirror=${mirror:-http://deb.debian.org/debian}

root_tar=$PWD/.cache/fresh/$suite.tar
if [ ! -s "$root_tar" ] || [ -n "$(find "$root_tar" -mtime +7)" ]; then
    mkdir -p "${root_tar%/*}"
    # A file for the log: it shows only when the bootstrap fails.
    timeout --foreground 900 debootstrap --variant=minbase $suite "$work/root" "$mirror" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
    for extra in $suite-updates $suite-security; do
        at=$(uri "$extra")
        [ -z "$at" ] || echo "deb $at $extra main" >>"$work/root/etc/apt/sources.list"
    done
    rm -rf "$work/root"/var/cache/apt/archives/*.deb
    tar -C "$work/root" -cf "$root_tar.part" . && mv "$root_tar.part" "$root_tar"
    rm -rf --one-file-system "$work/root"
    say "a bare Debian root stands"
else
    say "the bare Debian root of an earlier run"
fi

base=$(b from scratch)
b add -q "$base" "$root_tar" / >/dev/null
b copy -q "$base" "$(go env GOROOT)" /usr/local/go >/dev/null
[ ! -d /usr/local/share/ca-certificates ] || b copy -q "$base" /usr/local/share/ca-certificates /usr/local/share/ca-certificates >/dev/null
b config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env "GOPROXY=$(go env GOPROXY)" --env "GOSUMDB=$(go env GOSUMDB)" --env "GOFLAGS=$(go env GOFLAGS)" \
    --env "GOTOOLCHAIN=$(go env GOTOOLCHAIN)" "$base"
b commit -q "$base" fresh-base >/dev/null
b rm "$base" >/dev/null
say "an image with Go"

# What a clone would hold, with what is not committed yet.
mkdir "$work/src"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
    tar -c --null -T - | tar -x -C "$work/src"

timeout --foreground 1500 buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs build --isolation chroot --network host --layers=false \
    --build-arg BASE=localhost/fresh-base --build-arg CHECK=outside -f "$work/src/Dockerfile.rocm" -t fresh "$work/src" </dev/null
say "Dockerfile.rocm builds and its check passes"

# A user without rights, in a home and a clone of its own.
user=$(b from localhost/fresh)
inside() { timeout --foreground 600 buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs run --isolation chroot --network host "$@" </dev/null; }
inside "$user" -- useradd -m stranger
inside "$user" -- sh -c 'cp -r /src /home/stranger/hipfabric && rm -rf /home/stranger/hipfabric/bin && chown -R stranger: /home/stranger'
b config --workingdir /home/stranger/hipfabric --env HOME=/home/stranger "$user"
inside --user stranger "$user" -- make demo
say "make demo passes for a user without rights"
# Not make vet: for four systems from an empty cache it takes as long as the rest together, and finds the same on any machine.
inside --user stranger "$user" -- make guard
# stage and roce take minutes, and need no more than what the outside module below shows, a C compiler, and, for the mailbox's contract, more
# open files than the 1024 that buildah allows: a software device takes one an allocation.
inside --user stranger "$user" -- sh -c 'go test -short -p 1 $(go list ./fabric/... | grep -v -E "/(stage|roce)$")'
say "the guard and fabric's tests pass for a user without rights"
inside --user stranger "$user" -- build/outside/run.sh
say "an outside module passes for a user without rights"
echo "test-fresh: PASS"
