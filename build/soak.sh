#!/bin/sh
# Runs the soak: TestSoak reads SOAK_SEED and SOAK_TIME, breaks groups at random for that long, and checks that no rank is past its
# deadline, that all name one cause, that nothing leaks and that no byte is wrong.
# usage: build/soak.sh SEED TIME
set -eu
cd "$(dirname "$0")/.."
export SOAK_SEED="$1" SOAK_TIME="$2"
packages=$(grep -rlE --include='*_test.go' --exclude-dir=vendor '^func TestSoak\(' . | xargs -r -n 1 dirname | sort -u)
[ -n "$packages" ] || { echo "soak: no TestSoak found" >&2; exit 1; }
echo "soak: SEED=$SOAK_SEED TIME=$SOAK_TIME; repeat it with: make soak SEED=$SOAK_SEED TIME=$SOAK_TIME"
# One after the other: each wants the machine to itself.
# shellcheck disable=SC2086 # a list of packages
go test -p 1 -count=1 -v -timeout 0 -run '^TestSoak$' $packages || {
    echo "soak: failed with SEED=$SOAK_SEED" >&2
    exit 1
}
