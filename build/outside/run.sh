#!/bin/sh
# Builds and tests a module outside this one that requires hipfabric, as an engine's author would: plain, then with go mod vendor.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
cp "$here/testdata/"*.go "$away/"
cp "$root/go.sum" "$away/"
cd "$away"
export GOWORK=off
{
    go mod init example.org/outside
    go mod edit -require=github.com/hipfabric/hipfabric@v0.0.0 -replace="github.com/hipfabric/hipfabric=$root"
    go mod tidy
} 2>log || { cat log >&2; exit 1; }

test_with() {
    go build -mod="$1" ./...
    go vet -mod="$1" ./...
    go test -mod="$1" -count=1 -timeout 2m ./...
}

test_with mod
go mod vendor
test_with vendor
CGO_ENABLED=0 go build -mod=vendor ./...
