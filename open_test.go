package hipfabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

// assertOpenError checks the shape of what Open gave: an *fabric.OpError of kind want from this rank.
func assertOpenError(t *testing.T, rank int, err, want error) *fabric.OpError {
	t.Helper()
	require.ErrorIs(t, err, want, "rank %d", rank)
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "open", op.Op)
	assert.Equal(t, rank, op.Rank)
	return op
}

func TestASettingThatDiffersIsAMismatchOnEveryRank(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*Config)
		mine, good string
	}{
		"Timeout":      {func(c *Config) { c.Timeout = 7 * time.Second }, "7s", "30s"},
		"Heartbeat":    {func(c *Config) { c.Heartbeat = 150 * time.Millisecond }, "150ms", "100ms"},
		"VerdictBusy":  {func(c *Config) { c.VerdictBusy = 2 * time.Second }, "2s", "1s"},
		"VerdictIdle":  {func(c *Config) { c.VerdictIdle = 7 * time.Second }, "7s", "5s"},
		"EagerBytes":   {func(c *Config) { c.EagerBytes = 4096 }, "4096", "32768"},
		"Window":       {func(c *Config) { c.Window = 8192 }, "8192", "0"},
		"PartBytes":    {func(c *Config) { c.PartBytes = 1 << 20 }, "1048576", "524288"},
		"a bad part":   {func(c *Config) { c.PartBytes = 100 }, "PartBytes", "524288"},
		"MailboxBytes": {func(c *Config) { c.MailboxBytes = NoMailbox }, "-1", "65536"},
		"a bad box":    {func(c *Config) { c.MailboxBytes = 100 }, "MailboxBytes", "65536"},
		"Verify":       {func(c *Config) { c.Verify = true }, "true", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			for odd := range 3 {
				_, errs := openAll(t.Context(), configs(t, 3, func(cfg *Config) {
					if cfg.Rank == odd {
						c.change(cfg)
					}
				}))
				for r, err := range errs {
					assertOpenError(t, r, err, fabric.ErrMismatch)
					for _, want := range []string{strings.TrimPrefix(strings.TrimPrefix(name, "a bad part"), "a bad box"), c.mine, c.good} {
						assert.ErrorContains(t, err, want, "rank %d, odd %d", r, odd)
					}
				}
			}
		})
	}
}

func TestABadPartSizeIsRefusedByEveryRankAtOnce(t *testing.T) {
	for _, bad := range []int{-16, 8, 100, 64<<20 + 16} {
		_, errs := openAll(t.Context(), configs(t, 2, func(c *Config) { c.PartBytes = bad }))
		for r, err := range errs {
			assertOpenError(t, r, err, fabric.ErrInvalid)
			assert.ErrorContains(t, err, fmt.Sprintf("PartBytes is %d; a multiple of 16, 16 to 67108864", bad))
		}
	}
	c := Config{World: 1, PartBytes: 8}
	assert.ErrorIs(t, c.Validate(), fabric.ErrInvalid)
}

func TestAnotherWorldIsAMismatch(t *testing.T) {
	_, errs := openAll(t.Context(), configs(t, 2, func(c *Config) {
		if c.Rank == 1 {
			c.World = 3
		}
	}))
	for r, err := range errs {
		assertOpenError(t, r, err, fabric.ErrMismatch)
	}
}

func TestAWrongSecretIsRefusedAtOnceAndHarmsNobody(t *testing.T) {
	all := configs(t, 2, func(c *Config) { c.Secret = bytes.Repeat([]byte{1}, 16) })
	stranger := all[1]
	stranger.Secret = bytes.Repeat([]byte{2}, 16)
	strange := make(chan error, 1)
	go func() {
		_, err := Open(t.Context(), stranger)
		strange <- err
	}()
	first := make(chan error, 1)
	var g0 *Group
	go func() {
		var err error
		g0, err = Open(t.Context(), all[0])
		first <- err
	}()
	assertOpenError(t, 1, <-strange, fabric.ErrUnauthorized)
	g1, err := Open(t.Context(), all[1])
	require.NoError(t, err)
	require.NoError(t, <-first)
	require.NoError(t, errors.Join(closeAll([]*Group{g0, g1})...))
}

func TestAnUnreachableMasterIsNamedAtTheDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = Open(t.Context(), Config{Rank: 1, World: 2, Master: address, OpenTimeout: 300 * time.Millisecond})
	assertOpenError(t, 1, err, fabric.ErrTimeout)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.ErrorContains(t, err, address)
}

func TestARankThatNeverComesIsNamedAtTheDeadline(t *testing.T) {
	all := configs(t, 3, func(c *Config) { c.OpenTimeout = time.Second })
	_, errs := openAll(t.Context(), all[:2])
	for r, err := range errs {
		assertOpenError(t, r, err, fabric.ErrTimeout)
	}
	assert.ErrorContains(t, errs[0], "2", "rank 0 knows who is missing")
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Open(t.Context(), Config{World: 2, Master: l.Addr().String(), OpenTimeout: 10 * time.Second})
	op := assertOpenError(t, 0, err, fabric.ErrInvalid)
	assert.Equal(t, fabric.ScopeCall, op.Scope())
	_, port, _ := net.SplitHostPort(l.Addr().String())
	assert.ErrorContains(t, err, "Master: port "+port+" of 127.0.0.1 is taken")
}

func TestBeyondLoopbackNeedsASecret(t *testing.T) {
	_, err := Open(t.Context(), Config{World: 2, Master: "192.0.2.1:9000", OpenTimeout: 10 * time.Second})
	assertOpenError(t, 0, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "secret")
}

func TestAFailedOpenLeavesNothingOpen(t *testing.T) {
	warm := opened(t, 1, nil)
	closeAll(warm)
	before := openFiles()
	socket := filepath.Join(t.TempDir(), "status")
	for range 5 {
		_, errs := openAll(t.Context(), configs(t, 3, func(c *Config) {
			c.Verify = c.Rank == 2
			if c.Rank == 0 {
				c.StatusSocket = socket
			}
		}))
		require.ErrorIs(t, errors.Join(errs...), fabric.ErrMismatch)
	}
	assert.NoFileExists(t, socket)
	after := openFiles()
	assert.LessOrEqual(t, after, before)
}

func TestALiveStatusSocketEndsOpenBeforeAnyoneIsMet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serving(t, path, Status{})
	_, err := Open(t.Context(), Config{World: 1, StatusSocket: path})
	assertOpenError(t, 0, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, path)
}

func TestARankThatCannotOpenItsPathEndsAllAtOnce(t *testing.T) {
	broken := errors.New("no buffers")
	for name, fail := range map[string]opener{
		"before its connections": func(context.Context, *Config, *bootstrap.Session, spinPolicy) (fabric.Transport, []Path, error) {
			return nil, nil, broken
		},
		"after its connections": func(ctx context.Context, c *Config, s *bootstrap.Session, p spinPolicy) (fabric.Transport, []Path, error) {
			transport, _, err := openWires(ctx, c, s, p)
			if err != nil {
				return nil, nil, err
			}
			return nil, nil, errors.Join(broken, transport.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := configs(t, 3, func(c *Config) { c.OpenTimeout = time.Minute })
			closeAll(opened(t, 1, nil)) // what the runtime opens once stays
			files := openFiles()
			began := time.Now()
			for r, err := range each(3, func(r int) error {
				open := openWires
				if r == 1 {
					open = fail
				}
				c := all[r].withDefaults()
				_, err := join(t.Context(), c, nil, open)
				return openError(&c, err)
			}) {
				op := assertOpenError(t, r, err, fabric.ErrAborted)
				assert.Equal(t, []int{1, 1}, []int{op.Peer, op.From}, "rank %d", r)
				assert.ErrorContains(t, err, "rank 1 could not open its path: no buffers", "rank %d", r)
			}
			assert.Less(t, time.Since(began), 30*time.Second, "nobody waits for OpenTimeout")
			left := openFiles()
			assert.LessOrEqual(t, left, files, "files")
		})
	}
}

func TestACancelledContextEndsOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	all := configs(t, 2, nil)
	stop := time.AfterFunc(50*time.Millisecond, cancel)
	defer stop.Stop()
	_, err := Open(ctx, all[0]) // the other rank never comes
	assertOpenError(t, 0, err, fabric.ErrAborted)
	assert.ErrorIs(t, err, context.Canceled)
}
