//go:build rxevm && linux && cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// softRuns starts ranks of hipfabric, each with a soft RoCE device of its own, as if it were a host's.
func softRuns(t *testing.T, ranks int, args string) (code int, stdout, stderr string) {
	t.Helper()
	return runs(t, "run", "-n", fmt.Sprint(ranks), "--", "sh", "-c", "exec "+os.Args[0]+" perf --hca =rxe_s$((HIPFABRIC_RANK + 1)) "+args)
}

// Processes that a launcher starts, over real queue pairs: host memory, and that of software devices with and without the mailbox.
func TestSoftProcesses(t *testing.T) {
	out, err := exec.Command("rxe-topology", "switch:4").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, ranks := range []int{2, 4} {
		for _, c := range []struct{ args, says string }{
			{"--kind roce --op all --sizes 16,5000,200K --iters 5 --warmup 1", "roce"},
			{"--kind staged --over roce --device software --op all-gather,all-reduce,exchange,barrier --sizes 16,4K,100K --iters 5 --warmup 1", "mailbox"},
			{"--kind staged --over roce --mailbox off --device software --op all-gather,all-reduce --sizes 16,100K --iters 5 --warmup 1", "MailboxBytes is NoMailbox"},
		} {
			t.Run(fmt.Sprintf("%d ranks, %s", ranks, strings.Fields(c.args)[1]+" "+c.says), func(t *testing.T) {
				code, out, stderr := softRuns(t, ranks, c.args)
				require.Equal(t, exitOK, code, "%s%s", out, stderr)
				assert.Contains(t, out, c.says)
				assert.NotContains(t, stderr, "WARN")
			})
		}
	}
	code, text, stderr := softRuns(t, 2, "--kind roce --kill-after 500ms --sizes 64")
	assert.Equal(t, 128+int(syscall.SIGKILL), code, "%s%s", text, stderr)
	assert.Contains(t, text, "receipt: rank 0 lost rank 1", stderr)
	assert.Contains(t, stderr, "over roce: peer failed")
}
