#!/bin/bash
# Packs the guest's root, .cache/rxe-vm/initrd: init and the programs of guest/, this machine's own programs named here with their
# libraries, busybox for all others, the kernel's modules. Nothing is done when nothing changed since.
# usage: build/rxe-vm/image.sh (run.sh calls it)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cache=${here%/build/rxe-vm}/.cache/rxe-vm
PATH=$PATH:/usr/sbin:/sbin
die() { echo "rxe-vm: $*" >&2; exit 1; }

# sh as well, for busybox's prefers its own applets to what is on PATH.
required=(busybox sh bash ip tc rdma ss ibv_devinfo ibv_devices ibv_rc_pingpong ib_write_lat ib_write_bw ib_read_bw ib_send_bw ib_atomic_lat)
optional=(iperf3 ethtool nft)
programs=()
for p in "${required[@]}"; do
    programs+=("$(command -v "$p")") || die "$p is not installed; build/setup.sh test-rxe says how"
done
for p in "${optional[@]}"; do
    ! at=$(command -v "$p") || programs+=("$at")
done
for p in cpio depmod xz dpkg-deb setpriv; do
    command -v "$p" >/dev/null || die "$p is not installed; build/setup.sh test-rxe says how"
done
libraries=$(ldconfig -p | sed -n 's,.*libibverbs\.so\.1 (libc6\,x86-64) => \(.*\)/.*,\1,p' | head -n 1)
compgen -G "$libraries/libibverbs/librxe-*.so" >/dev/null || die "libibverbs has no provider for rxe; build/setup.sh test-rxe says how"

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
sum() { sha256sum | cut -d ' ' -f 1; }
kernel=$(sum <"$here/kernel.sh")
key=$({ cat "$here"/*.sh "$here"/guest/* && stat -L -c '%n %s %Y' "${programs[@]}"; } | sum)
[ "$(cat "$cache/key" 2>/dev/null)" != "$key" ] || exit 0
rm -f "$cache/key"
began=$SECONDS
if [ "$(cat "$cache/kernel/made-by" 2>/dev/null)" != "$kernel" ]; then
    "$here/kernel.sh"
    echo "$kernel" >"$cache/kernel/made-by"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{dev,proc,sys,run,tmp,root,var,etc/libibverbs.d,usr/{bin,sbin,lib,lib64,share}}
for t in bin sbin lib lib64; do ln -s "usr/$t" "$root/$t"; done
ln -s /run "$root/var/run"

# put FILE...: copies files, and the libraries that they need, to the folders in which they lie here.
put() {
    local f folder
    for f; do
        echo "$f"
        { ldd "$f" 2>/dev/null || true; } | grep -o '/[^ ]*' || true
    done | sort -u | while read -r f; do
        folder=$root$(readlink -f "${f%/*}")
        mkdir -p "$folder"
        cp -L --preserve=mode "$f" "$folder/"
    done
}

put "$(command -v busybox)"
for t in $(busybox --list); do
    [ -e "$root/usr/bin/$t" ] || ln -s "$(command -v busybox)" "$root/usr/bin/$t"
done
ln -sf "$(command -v busybox)" "$root/usr/sbin/modprobe" # where the kernel looks
for p in "${programs[@]}"; do
    [ -x "$root/usr/bin/busybox" ] && rm -f "$root/usr/bin/${p##*/}" "$root/usr/sbin/${p##*/}"
    put "$p"
done
# libibverbs opens its providers, and pthread_exit libgcc_s, at run time.
put "$libraries"/{libibverbs.so.1,librdmacm.so.1,libgcc_s.so.1} "$libraries"/libibverbs/librxe-rdmav*.so
echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver"
echo "root:x:0:0:root:/root:/bin/bash" >"$root/etc/passwd"
echo "root:x:0:" >"$root/etc/group"
echo "127.0.0.1 localhost rxe-vm" >"$root/etc/hosts"
[ ! -e /lib/terminfo/v/vt100 ] || install -D -m 644 /lib/terminfo/v/vt100 "$root/lib/terminfo/v/vt100"
cp -r "$cache/kernel/lib/modules" "$root/usr/lib/"
install -m 755 "$here/guest/init" "$root/init"
install -m 755 "$here"/guest/rxe-* "$root/usr/bin/"

(cd "$root" && find . -mindepth 1 | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"
mv "$work/initrd" "$cache/initrd"
echo "$key" >"$cache/key"
echo "rxe-vm: made the image in $((SECONDS - began)) s" >&2
