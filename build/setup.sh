#!/bin/sh
# Checks that what a make target needs is here: Go new enough for go.mod, and packages. Installs missing packages through apt when
# root, under CI=true or with SETUP=1; otherwise prints the one command that installs them and exits 1.
# usage: build/setup.sh demo|test|lint|fresh|shell-rxe|test-rxe
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-test}

need=$(awk '$1 == "go" {print $2; exit}' go.mod)

# older A B: version A is below version B.
older() {
    [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

check_go() {
    where="get it from https://go.dev/dl/, unpack it and put its bin folder first on PATH"
    if ! command -v go >/dev/null 2>&1; then
        echo "setup: no go command on PATH; hipfabric needs Go $need or newer: $where" >&2
        exit 1
    fi
    # Asked outside the module: an old Go cannot read a go.mod that names a newer one.
    found=$(cd / && go env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//')
    [ -n "$found" ] || found=unknown
    older "$found" "$need" || [ "$found" = unknown ] || return 0
    # From 1.21 on the go command may fetch the version that go.mod names by itself.
    if ! older "$found" 1.21 && [ "$found" != unknown ]; then
        chosen=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//')
        [ -n "$chosen" ] && ! older "$chosen" "$need" && return 0
    fi
    echo "setup: found Go $found ($(command -v go)); hipfabric needs Go $need or newer: $where" >&2
    exit 1
}

apt="" dnf="" pacman=""
# lacks APT DNF PACMAN: a package by its names.
lacks() {
    apt="$apt $1" dnf="$dnf $2" pacman="$pacman $3"
}

debian() { apt="$apt $1"; }

have() {
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]
}

compiles() {
    echo '#include <stdlib.h>' | gcc -x c -c -o /dev/null - >/dev/null 2>&1
}

# Package verbs is built against it and links nothing of it; -tags noverbs builds without.
rdma_header() {
    echo '#include <infiniband/verbs.h>' | gcc -x c -fsyntax-only - >/dev/null 2>&1
}

# What build/rxe-vm takes its kernel and its programs from: Debian's packages, on x86-64.
machine() {
    if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1 || [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "setup: make $purpose needs Debian on x86-64 (apt-get and dpkg-deb): its kernel is Debian's" >&2
        exit 1
    fi
    have qemu-system-x86_64 || debian qemu-system-x86
    have busybox || debian busybox-static
    have cpio || debian cpio
    have depmod || debian kmod
    have xz || debian xz-utils
    have ip || debian iproute2
    have ibv_rc_pingpong || debian ibverbs-utils
    have ib_write_lat || debian perftest
    [ -e /etc/libibverbs.d/rxe.driver ] || debian ibverbs-providers
}

required() {
    case "$purpose" in
    demo) ! have gcc || compiles || lacks libc6-dev glibc-devel glibc ;; # Go takes a gcc that is there
    test)
        have git || lacks git git git
        compiles || lacks "gcc libc6-dev" "gcc glibc-devel" "gcc glibc" # the race detector is cgo
        rdma_header || lacks libibverbs-dev rdma-core-devel rdma-core
        ;;
    lint)
        have git || lacks git git git
        ! compiles || rdma_header || lacks libibverbs-dev rdma-core-devel rdma-core
        ;;
    fresh)
        have debootstrap || lacks debootstrap debootstrap debootstrap
        have buildah || lacks buildah buildah buildah
        ;;
    test-rxe)
        machine
        compiles || debian "gcc libc6-dev"
        rdma_header || debian libibverbs-dev
        ;;
    shell-rxe) machine ;;
    *)
        echo "usage: build/setup.sh demo|test|lint|fresh|shell-rxe|test-rxe" >&2
        exit 2
        ;;
    esac
}

# Without these parts are absent, or some tests skip, and say so; nobody's machine gets an ssh server unasked.
wanted() {
    case "$purpose" in
    demo) compiles || lacks "gcc libc6-dev" "gcc glibc-devel" "gcc glibc" ;; # the device half is cgo
    test) ;;
    *) return 0 ;;
    esac
    [ "$purpose" = test ] || return 0
    have clang-19 || debian clang-19 # the kernels, rebuilt and compared
    have ld.lld-19 || debian lld-19
    have valgrind || lacks valgrind valgrind valgrind
    if [ "$(uname -m)" = x86_64 ]; then # AMD's own library, and its headers
        ls /usr/lib/*/libamdhip64.so.5 >/dev/null 2>&1 || debian libamdhip64-5
        [ -e /usr/include/hip/hip_runtime_api.h ] || debian libamdhip64-dev
    fi
    have sshd || lacks openssh-server openssh-server openssh
    have ssh || lacks openssh-client openssh-clients openssh
    have ip || lacks iproute2 iproute iproute2
    [ "$(uname -m)" != x86_64 ] || have qemu-aarch64 || lacks qemu-user qemu-user qemu-user
}

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo "

command_for() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "${as_root}apt-get update && ${as_root}apt-get install -y --no-install-recommends$apt"
    elif command -v dnf >/dev/null 2>&1; then
        echo "${as_root}dnf install -y$dnf"
    elif command -v pacman >/dev/null 2>&1; then
        echo "${as_root}pacman -S --needed$pacman"
    else
        echo "the one that your system has of: apt-get install$apt | dnf install$dnf | pacman -S$pacman"
    fi
}

install() {
    echo "setup: installing$apt" >&2
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp) # shown only when it fails
    # shellcheck disable=SC2086 # a list of names
    if ! { $as_root apt-get update && $as_root apt-get install -y --no-install-recommends $apt; } >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        echo "setup: that failed; run it yourself: $(command_for)" >&2
        exit 1
    fi
    rm -f "$log"
    apt=""
}

asked=no
[ "${CI:-}" = true ] || [ "${SETUP:-}" = 1 ] && asked=yes
may=$asked
[ "$(id -u)" = 0 ] && may=yes
command -v apt-get >/dev/null 2>&1 || may=no

check_go
required
[ "$asked" = yes ] && wanted
if [ -n "$apt" ]; then
    if [ "$may" = yes ]; then
        install
    else
        echo "setup: make $purpose needs packages that are missing; install them with: $(command_for)" >&2
        [ "$may" = no ] && command -v apt-get >/dev/null 2>&1 && echo "setup: or let make do it: make $purpose SETUP=1" >&2
        exit 1
    fi
fi
if [ "$asked" = no ]; then
    wanted
    [ -z "$apt" ] || echo "setup: some parts will be absent or skip; to have them all: $(command_for)" >&2
fi
