#!/bin/bash
# Takes Debian's kernel out of its package, without installing it: .cache/rxe-vm/kernel gets vmlinux and the modules named here, with those
# that they depend on. The package stays in .cache/rxe-vm, so that a later run needs no network.
# usage: build/rxe-vm/kernel.sh (run.sh calls it)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cache=${here%/build/rxe-vm}/.cache/rxe-vm
PATH=$PATH:/usr/sbin:/sbin
die() { echo "rxe-vm: $*" >&2; exit 1; }

modules=(
    virtio_pci 9p 9pnet_virtio                                       # the shared folder
    veth dummy bridge ifb macvlan 8021q                              # networks
    sch_netem sch_tbf sch_prio sch_htb sch_ingress                   # bad networks
    cls_u32 cls_matchall cls_flower act_mirred act_gact
    tcp_diag tcp_bbr                                                 # ss, another congestion control
    rdma_rxe rdma_ucm crc32_generic                                  # soft RoCE, and the checksum that it asks for by name
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package=$(cd "$cache" && echo linux-image-*.deb)
if [ ! -e "$cache/$package" ]; then
    command -v apt-get >/dev/null || die "the guest's kernel comes from apt-get, which is not here; it needs Debian"
    # fetch gets the kernel that linux-image-amd64 stands for.
    fetch() {
        local name
        name=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
        [ -n "$name" ] && (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$name")
    }
    fetch >"$work/log" 2>&1 || { apt-get -qq update && fetch; } >>"$work/log" 2>&1 ||
        { cat "$work/log" >&2; die "cannot download the kernel that linux-image-amd64 names; is it in apt's sources?"; }
    mv "$work"/linux-image-*.deb "$cache/"
    package=$(cd "$cache" && echo linux-image-*.deb)
    echo "rxe-vm: fetched $package" >&2
fi

raw=$work/raw
dpkg-deb -x "$cache/$package" "$raw"
version=$(ls "$raw/lib/modules")
depmod -b "$raw" "$version"
out=$work/kernel
mkdir -p "$out/lib/modules/$version"
for m in "${modules[@]}"; do
    modprobe -d "$raw" -S "$version" --show-depends "$m"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r f; do
    to=$out/${f#"$raw"/}
    mkdir -p "${to%/*}"
    case $f in
    *.xz) xz -dc "$f" >"${to%.xz}" ;;
    *) cp "$f" "$to" ;;
    esac
done
cp "$raw/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$out/lib/modules/$version/"
depmod -b "$out" "$version"

# number OFFSET SIZE: a little-endian number in the kernel file.
number() { od -An -v -tu"$2" -j"$(($1))" -N"$2" "$bz" | tr -d ' '; }

# QEMU enters an uncompressed kernel directly, which saves half of the boot. The boot protocol's header says where it lies in the file;
# its last word is its size.
bz=$raw/boot/vmlinuz-$version
at=$((($(number 0x1f1 1) + 1) * 512 + $(number 0x248 4)))
size=$(($(number 0x24c 4) - 4))
case $(od -An -tx1 -j"$at" -N4 "$bz" | tr -d ' ') in
fd377a58) unpack="xz -dc --single-stream" ;;
28b52ffd) unpack="zstd -dc" ;;
1f8b*) unpack="gzip -dc" ;;
*) die "$package: a kernel in a compression that is unknown here" ;;
esac
dd if="$bz" iflag=skip_bytes,count_bytes skip="$at" count="$size" bs=1M status=none | $unpack >"$out/vmlinux"

rm -rf "$cache/kernel"
mv "$out" "$cache/kernel"
