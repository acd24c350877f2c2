#!/bin/sh
# Builds softhip's tests with gcc and runs them: plain, with AddressSanitizer and UBSan, with ThreadSanitizer, under valgrind.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc=${CC:-gcc}

build() { # name flags...
    name=$1
    shift
    "$cc" -std=c11 -D_GNU_SOURCE -DSOFTHIP_SHARED -g -fvisibility=hidden -Wall -Wextra -Werror "$@" -o "$out/$name" "$here"/*.c "$here"/test/*.c -pthread
}
run() {
    echo "test-c: softhip, $1"
    shift
    timeout 300 "$@"
}

build plain -O2
run plain "$out/plain"
build asan -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
run 'AddressSanitizer and UndefinedBehaviorSanitizer' "$out/asan"
build tsan -O1 -fsanitize=thread
run ThreadSanitizer env TSAN_OPTIONS=halt_on_error=1 "$out/tsan"
if command -v valgrind >/dev/null; then
    build valgrind -O1 -DNO_TOUCH # it would tell of the touches that a test wants to fault
    # fair-sched: valgrind runs one thread at a time, and one that spins would keep the others out for ever.
    run valgrind valgrind -q --fair-sched=yes --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$out/valgrind"
else
    echo 'test-c: softhip, valgrind: not installed (apt-get install valgrind)'
fi
