package verbs_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func wired(t testing.TB, of verbstest.Topology) *verbstest.Fabric {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("package verbs has no memory for devices there")
	}
	f, err := verbstest.New(1, of)
	require.NoError(t, err)
	t.Cleanup(func() {
		f.Close()
		for i := range f.Hosts() {
			assert.Zero(t, f.Host(i).Left(), "host %d", i)
		}
	})
	return f
}

type station = conform.Station

func newStation(t testing.TB, h *verbstest.Host) *station {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	s, err := conform.NewStation(ctx, h.Library().Seam(), "mem0")
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.End())
		assert.Zero(t, s.Left())
	})
	return s
}

func take(t testing.TB, s *station, n int) []verbs.SeamCompletion {
	t.Helper()
	all, err := s.Take(n)
	require.NoError(t, err)
	return all
}

func stations(t testing.TB) (*verbstest.Fabric, *station, *station) {
	t.Helper()
	f := wired(t, verbstest.Switch(2, 1))
	a, b := newStation(t, f.Host(0)), newStation(t, f.Host(1))
	require.NoError(t, a.Join(b))
	require.NoError(t, b.Join(a))
	return f, a, b
}

func TestASeamConforms(t *testing.T) {
	f := wired(t, verbstest.Switch(2, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, conform.Seams(ctx, f.Host(0).Library().Seam(), f.Host(1).Library().Seam(), "mem0", "mem0"))
}

func TestNothingIsPostedAndPolledWithoutACall(t *testing.T) {
	f, a, _ := stations(t)
	for _, verb := range []string{"ibv_post_send", "ibv_post_recv", "ibv_poll_cq"} {
		f.Host(0).Refuse(verb, 1, syscall.EIO)
	}
	n, err := a.Poll(a.HCA, nil)
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = a.Post(a.QP.Handle, nil)
	require.NoError(t, err)
	assert.Zero(t, n)
	require.NoError(t, a.PostReceives(a.QP.Handle, 0))
}

func TestASeamSaysWhatFailedAndWhatWasOnlyFlushed(t *testing.T) {
	_, a, b := stations(t)
	w := verbs.SeamWork{ID: 1, Pieces: [2]verbs.SeamPiece{a.Piece(0, 8)}, Remote: b.Addr(0), RKey: b.Region.RKey + 1}
	_, err := a.Post(a.QP.Handle, []verbs.SeamWork{w, w})
	require.NoError(t, err)
	got := take(t, a, 2)
	assert.Equal(t, verbs.SeamCompletion{ID: 1, QPN: a.QP.Number, Failed: true, Text: "remote access error (status 10, vendor error 0x8a)"}, got[0])
	assert.Equal(t, verbs.SeamCompletion{ID: 1, QPN: a.QP.Number, Failed: true, Flushed: true, Text: "Work Request Flushed Error (status 5, vendor error 0x85)"}, got[1])

	require.NoError(t, b.Fail(b.QP.Handle))
	require.NoError(t, b.PostReceives(b.QP.Handle, 1))
	assert.True(t, take(t, b, 1)[0].Flushed)
	many := make([]verbs.SeamWork, 65)
	posted, err := a.Post(a.QP.Handle, many)
	require.ErrorIs(t, err, syscall.ENOMEM)
	assert.Equal(t, 64, posted)
	take(t, a, 64)
}

func TestASeamTellsWhatHappenedToADevice(t *testing.T) {
	f, a, b := stations(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := func(s *station) verbs.SeamEvent {
		e, err := s.NextEvent(ctx, s.HCA)
		require.NoError(t, err)
		return e
	}
	h := f.Host(0).HCA(0)
	h.Link(false)
	assert.Equal(t, verbs.SeamEvent{Text: "mem0: port error, port 1", Port: 1, PortDown: true}, next(a))
	h.Link(true)
	assert.Equal(t, verbs.SeamEvent{Text: "mem0: port active, port 1", Port: 1, PortUp: true}, next(a))
	h.Drift()
	assert.Equal(t, verbs.SeamEvent{Text: "mem0: GID table change, port 1", Port: 1, AddressesChanged: true}, next(a))
	_, err := a.Post(a.QP.Handle, []verbs.SeamWork{{Pieces: [2]verbs.SeamPiece{a.Piece(0, 8)}, Remote: b.Addr(0), RKey: b.Region.RKey + 1}})
	require.NoError(t, err)
	e := next(b)
	assert.Equal(t, [2]any{b.QP.Number, true}, [2]any{e.QPN, e.QPFatal}, e.Text)
	h.Fatal()
	assert.True(t, next(a).Fatal)

	ended, stop := context.WithCancel(t.Context())
	stop()
	_, err = a.NextEvent(ended, a.HCA)
	require.ErrorIs(t, err, context.Canceled)
	waits := make(chan error, 1)
	go func() { _, err := b.NextEvent(t.Context(), b.HCA); waits <- err }()
	require.NoError(t, b.Close(b.HCA))
	require.ErrorIs(t, <-waits, os.ErrClosed)
}

func TestAnHCATakesAllOfItsOwnAlong(t *testing.T) {
	f, a, _ := stations(t)
	require.ErrorContains(t, a.Close(a.Memory), "is registered 1 times")
	before := a.Left()
	require.NoError(t, a.Close(a.HCA))
	assert.Equal(t, before-3, a.Left(), "with the queue pair and the region")
	assert.Zero(t, f.Host(0).Left())
	_, err := a.Post(a.QP.Handle, make([]verbs.SeamWork, 1))
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorIs(t, a.PostReceives(a.QP.Handle, 1), os.ErrClosed)
	require.ErrorIs(t, a.Fail(a.QP.Handle), os.ErrClosed)
	require.ErrorIs(t, a.Connect(a.QP.Handle, verbs.SeamConnection{}), os.ErrClosed)
	_, err = a.InOrder(a.QP.Handle)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = a.Poll(a.HCA, make([]verbs.SeamCompletion, 1))
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = a.Register(a.HCA, a.Mem, false)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = a.NewQP(a.HCA, 1, 1, 1, 0)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = a.NextEvent(t.Context(), a.HCA)
	require.ErrorIs(t, err, os.ErrClosed)
	again, err := a.Open("mem0", 8)
	require.NoError(t, err)
	for _, h := range []uintptr{a.HCA, a.QP.Handle, a.Region.Handle, 0, ^uintptr(0)} {
		require.NoError(t, a.Close(h), "it has no other's handle")
		assert.NotEqual(t, again, h)
	}
	n, err := a.Poll(again, make([]verbs.SeamCompletion, 1))
	require.NoError(t, err)
	assert.Zero(t, n)
	require.NoError(t, a.Close(again))
}

func TestASeamRegistersItsOwnMemoryAndWholePages(t *testing.T) {
	f := wired(t, verbstest.Switch(1, 1))
	a := newStation(t, f.Host(0))
	page := os.Getpagesize()
	mem, handle, err := a.Alloc(page + 10)
	require.NoError(t, err)
	tail, err := a.Register(a.HCA, mem[page:], false)
	require.NoError(t, err, "of its own a part of a page will do")
	require.ErrorContains(t, a.Close(handle), "registered 1 times")
	require.NoError(t, a.Close(tail.Handle))
	_, err = a.Register(a.HCA, mem[8:], true)
	require.ErrorContains(t, err, "must begin where a page of")
	_, err = a.Register(a.HCA, nil, true)
	require.ErrorContains(t, err, "only whole pages")
	require.NoError(t, a.Close(handle))

	foreign, err := verbs.NewMemory(2 * page)
	require.NoError(t, err)
	region, err := a.Register(a.HCA, foreign.Bytes(), true)
	require.NoError(t, err)
	assert.NotZero(t, region.RKey)
	_, err = a.Register(a.HCA, foreign.Bytes()[:page+1], true)
	require.ErrorContains(t, err, "only whole pages")
	require.NoError(t, a.Close(region.Handle))
	require.NoError(t, foreign.Close())
}

func TestASeamRefusesByName(t *testing.T) {
	f := wired(t, verbstest.Switch(1, 1))
	a := newStation(t, f.Host(0))
	assert.Equal(t, "verbstest", a.String())
	for says, err := range map[string]error{
		`no RDMA device "mem7": there are mem0`:       refusal(a.Open("mem7", 1)),
		"completions of mem0: room for 0: 1 or more":  refusal(a.Open("mem0", 0)),
		"CQConfig.Entries is 1000000: 1 to 32767":     refusal(a.Open("mem0", 1000000)),
		"port 2 of mem0: it has 1, numbered from 1":   refusal(a.NewQP(a.HCA, 2, 1, 1, 0)),
		"QPConfig.MaxSend is 0: 1 to":                 refusal(a.NewQP(a.HCA, 1, 0, 1, 0)),
		"65 receives: 0 to 64 of queue pair":          a.PostReceives(a.QP.Handle, 65),
		"-1 receives: 0 to 64 of queue pair":          a.PostReceives(a.QP.Handle, -1),
		"memory of 0 bytes: 1 to":                     func() error { _, _, err := a.Alloc(0); return err }(),
		"Connection.MTU is 1500: 256, 512, 1024":      a.Connect(a.QP.Handle, verbs.SeamConnection{MTU: 1500}),
		"the queue pair of handle 0x3: file already ": a.Fail(3),
	} {
		require.ErrorContains(t, err, says)
	}
	f.Host(0).Refuse("ibv_alloc_pd", 1, syscall.ENOMEM)
	before := f.Host(0).Left()
	require.ErrorIs(t, refusal(a.Open("mem0", 1)), syscall.ENOMEM)
	assert.Equal(t, before, f.Host(0).Left())
}

func refusal[T any](_ T, err error) error { return err }

func TestOrderIsAskedOfTheDevice(t *testing.T) {
	f, a, _ := stations(t)
	ordered := func() bool {
		in, err := a.InOrder(a.QP.Handle)
		require.NoError(t, err)
		return in
	}
	assert.True(t, a.QP.InOrder)
	assert.True(t, ordered())
	f.DenyOrder(true)
	assert.False(t, ordered())
	f.DenyOrder(false)
	f.Host(0).Refuse("ibv_query_qp_data_in_order", 1, syscall.EIO)
	before := f.Host(0).Left()
	require.ErrorIs(t, refusal(a.NewQP(a.HCA, 1, 1, 1, 0)), syscall.EIO)
	assert.Equal(t, before, f.Host(0).Left())
	f.Host(0).Lack(verbs.FeatureQueryDataInOrder)
	assert.False(t, ordered())
}

func TestPortsAreListedWhateverTheirState(t *testing.T) {
	f := wired(t, verbstest.Switch(2, 2))
	s := f.Host(1).Library().Seam()
	require.NoError(t, f.Host(1).HCA(0).MTU(1024))
	f.Host(1).HCA(1).Link(false)
	ports, err := s.Ports()
	require.NoError(t, err)
	require.Len(t, ports, 2)
	gids := ports[0].GIDs
	require.Len(t, gids, 4)
	assert.Equal(t, "10.77.0.2", verbs.GID(gids[3].Addr).Addr().String())
	assert.Equal(t, [3]any{2, 5, "ethmem0"}, [3]any{gids[3].Version, gids[3].Index, gids[3].NetDev})
	ports[0].GIDs, ports[1].GIDs = nil, nil
	assert.Equal(t, []verbs.SeamPort{
		{Device: "mem0", Port: 1, Active: true, State: "active", Ethernet: true, MTU: 1024, Rate: 103_124_000_000},
		{Device: "mem1", Port: 1, State: "down", Ethernet: true, MTU: 4096, Rate: 103_124_000_000},
	}, ports)

	for _, verb := range []string{"ibv_open_device", "ibv_query_port", "ibv_query_gid_table"} {
		f.Host(1).Refuse(verb, 1, syscall.EACCES)
		ports, err = s.Ports()
		require.NoError(t, err)
		require.Len(t, ports, 2)
		assert.Equal(t, [3]any{"mem1", 1, false}, [3]any{ports[1].Device, ports[1].Port, ports[1].Active})
		assert.Contains(t, ports[0].State, verb+" on mem0: permission denied")
		f.Host(1).Refuse(verb, 0, 0)
	}
	f.Host(1).NoRDMA()
	_, err = s.Ports()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
