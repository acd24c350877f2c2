//go:build rxevm && linux

package rxe

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/verbs"
)

func write(a, b *end, rkey uint32, offset uint64) verbs.SendWR {
	return verbs.SendWR{ID: 1, Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(0, 64)), RemoteAddr: b.mr.Addr() + offset, RKey: rkey}
}

func TestWhatThePeerDoesNotAllowIsTheCauseAndTheRestIsFlushed(t *testing.T) {
	for name, request := range map[string]func(a, b *end) verbs.SendWR{
		"a wrong key":   func(a, b *end) verbs.SendWR { return write(a, b, b.mr.RKey()+0x100, 0) },
		"past the end":  func(a, b *end) verbs.SendWR { return write(a, b, b.mr.RKey(), memory-63) },
		"far before it": func(a, b *end) verbs.SendWR { return write(a, b, b.mr.RKey(), ^uint64(1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
			a.send(t, request(a, b), write(a, b, b.mr.RKey(), 0), write(a, b, b.mr.RKey(), 0))
			wc := a.poll(t, 3)
			assert.Equal(t, verbs.StatusRemoteAccess, wc[0].Status)
			for _, later := range wc[1:] {
				assert.Equal(t, verbs.StatusFlushed, later.Status)
				assert.ErrorIs(t, a.cq.Err(later), verbs.ErrFlushed)
			}
			var cause *verbs.CompletionError
			require.ErrorAs(t, a.qp.Err(), &cause)
			assert.Equal(t, &verbs.CompletionError{Device: "rxe0", QPN: a.qp.QPN(), WRID: 1, Status: verbs.StatusRemoteAccess, VendorErr: wc[0].VendorErr}, cause)
			assert.ErrorContains(t, cause, "on rxe0: remote access error (status 10")
			state, _, err := a.qp.Query()
			require.NoError(t, err)
			assert.Equal(t, verbs.StateErr, state)
		})
	}
}

func TestNoReceiveIsRNRExceeded(t *testing.T) {
	a, _ := pair(t, verbs.QPConfig{}, verbs.Connection{RNRRetries: 1, RNRTimer: time.Millisecond})
	a.send(t, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(0, 8))})
	assert.Equal(t, verbs.StatusRNRRetryExceeded, a.poll(t, 1)[0].Status)
}

func TestAPeerThatIsGoneIsRetryExceeded(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{Timeout: time.Millisecond, Retries: 1})
	require.NoError(t, b.qp.Close())
	a.send(t, write(a, b, b.mr.RKey(), 0))
	wc := a.poll(t, 1)[0]
	assert.Equal(t, verbs.StatusRetryExceeded, wc.Status)
	assert.ErrorContains(t, a.qp.Err(), "transport retry counter exceeded")
}

func TestAFailedQueuePairGivesBackWhatWasPosted(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	for i := range uint64(10) {
		b.receive(t, verbs.RecvWR{ID: i, SGE: list(b.mr.SGE(0, 64))})
	}
	require.NoError(t, b.qp.Fail())
	for i, wc := range b.poll(t, 10) {
		assert.Equal(t, uint64(i), wc.ID)
		assert.Equal(t, verbs.StatusFlushed, wc.Status)
	}
	require.ErrorIs(t, b.qp.Err(), verbs.ErrFlushed, "nothing else is known")

	require.NoError(t, a.qp.Reset())
	require.NoError(t, b.qp.Reset())
	require.NoError(t, b.qp.Err())
	connect(t, a, b, verbs.Connection{})
	a.send(t, write(a, b, b.mr.RKey(), 0))
	require.NoError(t, a.cq.Err(a.poll(t, 1)[0]))
}

func TestNoWayToThePeerIsSaid(t *testing.T) {
	a := newEnd(t, "rxe0", verbs.QPConfig{})
	require.NoError(t, a.qp.Init(verbs.Connection{}))
	for index, why := range map[int]string{200: "ibv_modify_qp on rxe0", 1023: "GIDIndex is 1023: 0 to 255"} {
		err := a.qp.ReadyToReceive(verbs.Connection{GIDIndex: index, Remote: a.endpoint()})
		require.ErrorContains(t, err, why)
	}
}

func TestADMABufIsRefusedByName(t *testing.T) {
	a := newEnd(t, "rxe0", verbs.QPConfig{})
	fd, err := unix.MemfdCreate("none", 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	_, err = a.pd.RegisterDMABuf(fd, 0, 4096, 0, verbs.AccessLocalWrite)
	var unsupported *verbs.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	assert.Equal(t, "rxe0", unsupported.Device)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestMemoryThatIsNotThereIsRefused(t *testing.T) {
	a := newEnd(t, "rxe0", verbs.QPConfig{})
	_, err := a.pd.RegisterPages(1<<46, 4096, verbs.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT)
	assert.ErrorContains(t, err, "registering 4096 bytes: ibv_reg_mr on rxe0: bad address (errno 14)")
}

const childVariable = "HIPFABRIC_TEST_VERBS_CHILD"

// The limit is of a process without rights, so it is a process of its own: this test binary again.
func TestALowMemlockIsSaidWithTheNeedAndTheLimit(t *testing.T) {
	exe, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	copied := "/tmp/verbs-memlock.test" // where anybody may run it
	require.NoError(t, os.WriteFile(copied, exe, 0o755))
	require.NoError(t, os.Chmod("/tmp", 0o777))
	cmd := exec.CommandContext(within(t, bound), copied, "-test.run=^TestInAProcessThatMayNotLock$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "refused as it should be")
}

func TestInAProcessThatMayNotLock(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		return // the other test runs it
	}
	const limit = 256 << 10
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}))
	pd, err := open(t, "rxe0").NewPD()
	require.NoError(t, err)
	var held []*verbs.MR
	for n, fits := range []bool{true, true, false} {
		m, err := verbs.NewMemory(100 << 10)
		require.NoError(t, err)
		mr, err := pd.Register(m, verbs.AccessLocalWrite)
		if fits {
			require.NoError(t, err, n)
			held = append(held, mr)
			continue
		}
		var low *verbs.MemlockError
		require.ErrorAs(t, err, &low)
		assert.Equal(t, [3]uint64{100 << 10, 200 << 10, limit}, [3]uint64{low.Bytes, low.Pinned, low.Limit})
		require.ErrorIs(t, err, syscall.ENOMEM)
		for _, says := range []string{"registering 102400 bytes", "ibv_reg_mr on rxe0", strconv.Itoa(limit), "ulimit -l unlimited"} {
			assert.ErrorContains(t, err, says)
		}
		require.NoError(t, m.Close(), "what was not registered can be closed")
	}
	for _, mr := range held {
		require.NoError(t, mr.Close())
	}
	t.Log("refused as it should be")
}
