//go:build rxevm && linux

// Package rxe holds package verbs to what it promises, on soft RoCE in the machine of build/rxe-vm.
package rxe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		if out, err := exec.Command("rxe-topology", "pair").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "rxe-topology: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

const bound = time.Minute

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, name string) *verbs.Context {
	t.Helper()
	lib, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	device, err := lib.Device(name)
	require.NoError(t, err)
	c, err := device.Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// An end is one of two queue pairs that are connected, with a channel and 64 KiB.
type end struct {
	c       *verbs.Context
	channel *verbs.Channel
	cq      *verbs.CQ
	pd      *verbs.PD
	mem     *verbs.Memory
	mr      *verbs.MR
	qp      *verbs.QP
	gid     verbs.GIDEntry
}

const memory = 64 << 10

func newEnd(t testing.TB, device string, f verbs.QPConfig) *end {
	t.Helper()
	e := &end{c: open(t, device)}
	var err error
	e.channel, err = e.c.NewChannel()
	require.NoError(t, err)
	e.cq, err = e.c.NewCQ(verbs.CQConfig{Channel: e.channel})
	require.NoError(t, err)
	e.pd, err = e.c.NewPD()
	require.NoError(t, err)
	e.mem, err = verbs.NewMemory(memory)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.mr.Close()); require.NoError(t, e.mem.Close()) })
	e.mr, err = e.pd.Register(e.mem, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	require.NoError(t, err)
	f.SendCQ = e.cq
	e.qp, err = e.pd.NewQP(f)
	require.NoError(t, err)
	e.gid = mapped(t, e.c)
	return e
}

// mapped finds the IPv4-mapped RoCE v2 GID.
func mapped(t testing.TB, c *verbs.Context) verbs.GIDEntry {
	t.Helper()
	gids, err := c.GIDs()
	require.NoError(t, err)
	for _, g := range gids {
		if g.Type == verbs.GIDRoCEv2 && g.GID.Addr().Is4() {
			return g
		}
	}
	require.Fail(t, "no IPv4-mapped RoCE v2 GID", "%v", gids)
	return verbs.GIDEntry{}
}

func (e *end) endpoint() verbs.Endpoint {
	return verbs.Endpoint{QPN: e.qp.QPN(), PSN: 0x1234, GID: e.gid.GID}
}

// pair gives two ends that are connected, with what k has beside addresses.
func pair(t testing.TB, f verbs.QPConfig, k verbs.Connection) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, "rxe0", f), newEnd(t, "rxe1", f)
	connect(t, a, b, k)
	return a, b
}

func connect(t testing.TB, a, b *end, k verbs.Connection) {
	t.Helper()
	for _, e := range [][2]*end{{a, b}, {b, a}} {
		k.GIDIndex, k.Remote, k.PSN = e[0].gid.Index, e[1].endpoint(), 0x1234
		require.NoError(t, e[0].qp.Connect(k))
	}
}

// poll waits for n completions.
func (e *end) poll(t testing.TB, n int) []verbs.WC {
	t.Helper()
	var all []verbs.WC
	wc := make([]verbs.WC, 16)
	for until := time.Now().Add(bound); len(all) < n; runtime.Gosched() {
		got, err := e.cq.Poll(wc)
		require.NoError(t, err)
		all = append(all, wc[:got]...)
		require.True(t, time.Now().Before(until), "%d of %d completions: %v", len(all), n, all)
	}
	return all
}

func (e *end) send(t testing.TB, chain ...verbs.SendWR) {
	t.Helper()
	n, err := e.qp.PostSend(chain...)
	require.NoError(t, err)
	require.Equal(t, len(chain), n)
}

func (e *end) receive(t testing.TB, chain ...verbs.RecvWR) {
	t.Helper()
	n, err := e.qp.PostRecv(chain...)
	require.NoError(t, err)
	require.Equal(t, len(chain), n)
}

// list is one entry.
func list(s verbs.SGE) []verbs.SGE { return []verbs.SGE{s} }

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i)*7 ^ byte(i>>8) ^ seed
	}
}
