#!/bin/sh
# Builds the kernels of csrc/mailbox with clang 19, lld 19 and go, without ROCm and without a CUDA toolkit: mailbox.hipfb, one bundle
# for every AMD target, mailbox.ptx for NVIDIA's driver to assemble, and mailbox.built, which says what built which bytes. The
# same compiler makes the same bytes in any folder.
# usage: build/kernels.sh [FOLDER [ARCH...]]    FOLDER: where to put them; csrc/mailbox by default. ARCH: AMD targets other than ours
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-csrc/mailbox}"
out=$(cd "${1:-csrc/mailbox}" && pwd)
[ $# -eq 0 ] || shift
archs=${*:-gfx90a gfx942 gfx1030 gfx1100 gfx1151 gfx1201}
clang=${CLANG:-clang++-19}

if ! command -v "$clang" >/dev/null 2>&1; then
    echo "kernels: no $clang; on Debian: apt-get install -y --no-install-recommends clang-19 lld-19" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
# A cuid would differ from folder to folder, and contracted sums from the host's.
common="-O2 -std=c++17 -Wall -Wextra -Werror -fuse-cuid=none -ffp-contract=off"
objects=""
for arch in $archs; do
    # shellcheck disable=SC2086 # a list of options
    (cd csrc/mailbox && "$clang" -x hip --offload-device-only --no-gpu-bundle-output --offload-arch=$arch -nogpuinc -nogpulib $common \
        -mcode-object-version=5 -o "$work/$arch" mailbox.hip)
    objects="$objects $arch=$work/$arch"
done
# shellcheck disable=SC2086 # a list of arguments
go run ./build/bundle "$out/mailbox.hipfb" $objects

cd csrc/mailbox
# ptx63: nanosleep is younger than the version that sm_70 alone asks for.
# shellcheck disable=SC2086
"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx63 -nocudainc -nocudalib $common \
    -S -o "$out/mailbox.ptx" mailbox.hip

{
    "$clang" --version | head -n 1
    (cd "$out" && sha256sum mailbox.hipfb mailbox.ptx)
    sha256sum calls.hip mailbox.h mailbox.hip place.h platform.h region.h sum.h
} >"$out/mailbox.built.new"
mv "$out/mailbox.built.new" "$out/mailbox.built"
