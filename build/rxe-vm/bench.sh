#!/bin/bash
# Times RoCE in the guest against perftest's programs, and posting from Go against C.
# usage: build/rxe-vm/bench.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
vm=$PWD/build/rxe-vm/run.sh
export CGO_ENABLED=1
export GOTMPDIR=$PWD/.cache/rxe-vm/build # the guest sees this folder, where go test puts its programs
mkdir -p "$GOTMPDIR"
go run ./build/gotest -count=1 -tags rxevm -run '^TestSoftBars$' -timeout 4m -exec "'$vm' -t 230" ./fabric/roce
go run ./build/gotest -count=1 -tags rxevm -run '^TestPostingAChainOfTwoCostsLittleMoreThanFromC$' -timeout 2m -exec "'$vm' -t 110" ./verbs/internal/rxe
