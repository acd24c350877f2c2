#!/bin/sh
# Fuzzes every target of the module, one after the other.
# usage: build/fuzz.sh [TIME]   (default: 30s a target)
set -eu
cd "$(dirname "$0")/.."
time=${1:-30s}
targets=$(grep -rnE --include='*_test.go' --exclude-dir=vendor --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+\(' . |
    sed -E 's|^(.*)/[^/]*_test.go:[0-9]+:func (Fuzz[A-Za-z0-9_]+).*|\1 \2|' | sort)
[ -n "$targets" ] || { echo "fuzz: no fuzz targets found" >&2; exit 1; }
echo "$targets" | while read -r package target; do
    echo "fuzz: $target in $package for $time"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
done
echo "fuzz: $(echo "$targets" | wc -l) targets passed"
