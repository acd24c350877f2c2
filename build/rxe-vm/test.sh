#!/bin/bash
# The tests of the machine itself, from outside and in it, then those that need it. Each package in the guest gets a guest of its own.
# A test that skips here, or a package without tests, is a failure.
# usage: build/rxe-vm/test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
vm=$PWD/build/rxe-vm/run.sh
packages=(./cmd/hipfabric/internal/netns)
devices=(./verbs/internal/rxe) # cgo, against this machine's C library, which is what the guest has

export CGO_ENABLED=0
export GOTMPDIR=$PWD/.cache/rxe-vm/build # the guest sees this folder, where go test puts its programs
mkdir -p "$GOTMPDIR"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$vm" uname -sr
{
    go run ./build/gotest -count=1 -tags rxevm ./build/rxe-vm \
        -- -count=1 -tags rxevm -exec "'$vm' -t 300" ./build/rxe-vm/selftest \
        -- -count=1 -p 1 -timeout 9m -exec "'$vm' -t 530" "${packages[@]}"
    CGO_ENABLED=1 go run ./build/gotest -count=1 -p 1 -tags rxevm -exec "'$vm' -t 300" "${devices[@]}" \
        -- -race -count=1 -p 1 -tags rxevm -timeout 9m -exec "'$vm' -t 530" "${devices[@]}" \
        -- -count=1 -tags rxevm -run '^TestSoft' -skip '^TestSoftBars$' -timeout 9m -exec "'$vm' -t 530" ./fabric/roce \
        -- -count=1 -tags rxevm -run '^TestSoft' -timeout 4m -exec "'$vm' -t 230" ./cmd/hipfabric # TestSoft: the others need no device; bars need an idle machine
} | tee "$log"
if grep '^go test ' "$log" | grep -v ': [1-9][0-9]* passed, 0 failed, 0 skipped in '; then
    echo "test-rxe: each of these must run all its tests"
    exit 1
fi
