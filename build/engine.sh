#!/bin/sh
# Runs the built examples/engine on 1, 2 and 4 ranks, in f32 and in bf16, and holds them to the same tokens.
# usage: build/engine.sh
set -eu
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

for weights in "" -bf16; do
    first=
    for n in 1 2 4; do
        bin/hipfabric run -n $n -- bin/engine $weights >"$said"
        cat "$said"
        crc=$(sed -n 's/.*(crc \([0-9a-f]*\)).*/\1/p' "$said")
        [ -n "$crc" ] || { echo "engine: world $n printed no checksum of its tokens" >&2; exit 1; }
        [ "$crc" = "${first:=$crc}" ] || { echo "engine: world $n has the tokens $crc, world 1 has $first" >&2; exit 1; }
    done
done
