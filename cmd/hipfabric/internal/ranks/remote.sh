# The far side of `hipfabric run --hosts`, a rank under the shell that ssh gave it. Its first line of standard input is
# the secret; each further line names a signal for the rank. At the end of standard input, so of ssh, the rank ends.
umask 077
IFS= read -r secret || exit 3
dir=$(mktemp -d "${TMPDIR:-/tmp}/hipfabric-XXXXXXXX") || exit 3
trap 'rm -rf "$dir"' EXIT
printf '%s\n' "$secret" >"$dir/secret" || exit 3
unset secret
export HIPFABRIC_SECRET_FILE="$dir/secret" HIPFABRIC_STATUS="$dir/status-$HIPFABRIC_RANK.sock"
umask "$mask"
cd -- "$folder" || exit 3
exec 3<&0
group=$(command -v setsid) || echo "hipfabric: this host has no setsid: what the rank starts may outlive it" >&2
$group "$@" </dev/null 3<&- &
rank=$!
trap '' HUP INT TERM PIPE
# A rank that has yet to make its group gets the signal itself.
signal() {
	kill -s "$1" -- "${group:+-}$rank" 2>/dev/null || kill -s "$1" -- "$rank" 2>/dev/null
	[ "$1" != TERM ] || kill -s CONT -- "${group:+-}$rank" 2>/dev/null
}
(
	while IFS= read -r name; do signal "$name"; done
	signal TERM
	sleep "$grace"
	signal KILL
) <&3 >/dev/null 2>&1 &
orders=$!
exec 3<&-
wait "$rank" 2>/dev/null
code=$?
if [ -n "$group" ]; then
	signal TERM
	tenths=0
	while kill -s 0 -- "-$rank" 2>/dev/null && [ "$tenths" -lt 10 ]; do
		sleep 0.1 2>/dev/null || sleep 1
		tenths=$((tenths + 1))
	done
	signal KILL
fi
kill -s KILL "$orders" 2>/dev/null
exit "$code"
