//go:build cgo && !noverbs

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/fakeverbs"
)

// fake is a library whose queue pairs are connected to themselves: Go and C of ours, without a device.
func fake(t testing.TB, devices int, less ...string) *verbs.Library {
	t.Helper()
	path, err := fakeverbs.Build("internal/fakeverbs", t.TempDir(), devices, less...)
	if errors.Is(err, fakeverbs.ErrTools) {
		t.Skip(err)
	}
	require.NoError(t, err)
	lib, err := verbs.Open(verbs.Config{Library: path})
	require.NoError(t, err)
	return lib
}

// self is a queue pair that is connected to itself.
type self struct {
	c   *verbs.Context
	ch  *verbs.Channel
	cq  *verbs.CQ
	pd  *verbs.PD
	mem *verbs.Memory
	mr  *verbs.MR
	qp  *verbs.QP
}

func open(t testing.TB, lib *verbs.Library) *verbs.Context {
	t.Helper()
	d, err := lib.Device("fake0")
	require.NoError(t, err)
	c, err := d.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func newSelf(t testing.TB, f verbs.QPConfig) *self {
	t.Helper()
	s := &self{c: open(t, fake(t, 1))}
	var err error
	s.ch, err = s.c.NewChannel()
	require.NoError(t, err)
	s.cq, err = s.c.NewCQ(verbs.CQConfig{Channel: s.ch})
	require.NoError(t, err)
	s.pd, err = s.c.NewPD()
	require.NoError(t, err)
	s.mem, err = verbs.NewMemory(8192)
	require.NoError(t, err)
	s.mr, err = s.pd.Register(s.mem, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	f.SendCQ = s.cq
	s.qp, err = s.pd.NewQP(f)
	require.NoError(t, err)
	return s
}

func (s *self) connect(t testing.TB) {
	t.Helper()
	require.NoError(t, s.qp.Connect(verbs.Connection{GIDIndex: 2, Remote: verbs.Endpoint{QPN: s.qp.QPN()}}))
}

func (s *self) poll(t *testing.T, want int) []verbs.WC {
	t.Helper()
	wc := make([]verbs.WC, want+1)
	n, err := s.cq.Poll(wc)
	require.NoError(t, err)
	require.Equal(t, want, n)
	return wc[:n]
}

func TestDevicesAndTheirNumbersCrossUnchanged(t *testing.T) {
	lib := fake(t, 20)
	all, err := lib.Devices()
	require.NoError(t, err)
	require.Len(t, all, 20, "more than fit at first")
	assert.Equal(t, "fake3", all[3].Name())
	assert.Equal(t, "/dev/infiniband/uverbs3", all[3].Node())
	assert.Equal(t, uint64(0x0102030405060703), all[3].GUID())
	assert.Equal(t, 43, all[3].Index())
	assert.True(t, all[3].IsChannelAdapter())
	_, err = all[1].Open()
	require.ErrorIs(t, err, syscall.EACCES)
	assert.EqualError(t, err, "verbs: ibv_open_device on fake1: permission denied (errno 13): this user needs to read and write /dev/infiniband/uverbs1")

	c := open(t, lib)
	assert.Equal(t, verbs.DeviceAttr{
		Firmware: "1.2.3", NodeGUID: 0x0102030405060700, VendorID: 3, PartID: 4, HardwareVersion: 5, MaxMRBytes: 1 << 40, MaxQP: 6, MaxQPWR: 1000,
		MaxSGE: 4, MaxCQ: 9, MaxCQE: 4096, MaxMR: 11, MaxPD: 12, MaxReadsIn: 13, MaxReadsOut: 14, PKeys: 15, Ports: 2,
	}, c.Attr())
	port, err := c.Port(2)
	require.NoError(t, err)
	assert.Equal(t, verbs.PortAttr{
		State: verbs.PortActive, LinkLayer: verbs.LinkEthernet, MaxMTU: 4096, ActiveMTU: 1024, MaxMessage: 1 << 30, GIDs: 4, PKeys: 1, LID: 23,
		PhysicalState: 5, Width: 2, Speed: 32,
	}, port)
	key, err := c.PKey(1, 0)
	require.NoError(t, err)
	assert.Equal(t, uint16(0x8001), key)
	_, err = c.PKey(1, 3)
	require.EqualError(t, err, "verbs: P_Key 3 of port 1: ibv_query_pkey on fake0: invalid argument (errno 22)")
	for _, index := range []int{-1, 1 << 16, 1 << 32} {
		_, err = c.PKey(2, index)
		require.ErrorContains(t, err, fmt.Sprintf("P_Key index %d of fake0 port 2: 0 to 65535", index))
	}
}

func TestASparseGIDTableHasNoEmptySlots(t *testing.T) {
	gids, err := open(t, fake(t, 1)).GIDs()
	require.NoError(t, err)
	require.Len(t, gids, 3)
	for i, want := range []verbs.GIDEntry{
		{Port: 1, Index: 0, Type: verbs.GIDRoCEv1}, {Port: 1, Index: 2, Type: verbs.GIDRoCEv2, NetDev: "lo", Interface: 1}, {Port: 2, Index: 3, Type: verbs.GIDRoCEv2},
	} {
		want.GID = gids[i].GID
		assert.Equal(t, want, gids[i])
		assert.Equal(t, netip.MustParseAddr([]string{"fe80::1", "10.0.0.7", "2001:db8::9"}[i]), gids[i].GID.Addr())
	}
	gids, err = open(t, fake(t, 1, "_ibv_query_gid_table")).GIDs()
	require.NoError(t, err)
	assert.Empty(t, gids, "sysfs has no fake0")
}

func TestACountThatCannotBeSizesNothing(t *testing.T) {
	for _, count := range []int{-1, 4097} {
		_, err := fake(t, count).Devices()
		require.ErrorIs(t, err, syscall.EOVERFLOW, count)
		assert.ErrorContains(t, err, "ibv_get_device_list: ")
	}
	for _, less := range [][]string{nil, {"_ibv_query_gid_table"}} {
		c := open(t, fake(t, 1, less...))
		_, err := c.PKey(1, 8)
		require.Error(t, err)
		_, err = c.GIDs()
		require.ErrorIs(t, err, syscall.EOVERFLOW)
		assert.ErrorContains(t, err, "ibv_query_gid_table on fake0")
		_, err = c.PKey(1, 9)
		require.Error(t, err)
		if _, err = c.GIDs(); less == nil {
			require.ErrorIs(t, err, syscall.EOVERFLOW)
		}
	}
}

func TestWhatALibraryLacksIsRefusedByName(t *testing.T) {
	lib := fake(t, 1, "ibv_reg_dmabuf_mr", "ibv_query_qp_data_in_order", "ibv_get_device_index", "ibv_reg_mr_iova2")
	c := open(t, lib)
	assert.Equal(t, -1, c.Device().Index())
	pd, err := c.NewPD()
	require.NoError(t, err)
	cq, err := c.NewCQ(verbs.CQConfig{})
	require.NoError(t, err)
	qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq})
	require.NoError(t, err)
	_, ordered := qp.DataInOrder(verbs.OpWrite)
	_, exported := pd.RegisterDMABuf(0, 0, 1, 0, 0)
	for _, err := range []error{ordered, exported} {
		var lacks *verbs.UnsupportedError
		require.ErrorAs(t, err, &lacks)
		assert.Equal(t, lib.Path(), lacks.Device)
		assert.ErrorIs(t, err, errors.ErrUnsupported)
	}
	m, err := verbs.NewMemory(1)
	require.NoError(t, err)
	mr, err := pd.Register(m, verbs.AccessLocalWrite|verbs.AccessRelaxedOrdering)
	require.NoError(t, err)
	assert.Equal(t, uint32(verbs.AccessLocalWrite), mr.RKey(), "the library would pass on what it does not know")
}

func TestRegisteringTakesTheCallThatKnowsTheAccess(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	assert.Equal(t, uint32(0x100), s.mr.LKey())
	assert.Equal(t, uint32(3), s.mr.RKey())
	assert.Equal(t, uint64(s.mem.Addr()), s.mr.Addr())
	assert.Equal(t, verbs.SGE{Addr: s.mr.Addr() + 10, Length: 20, LKey: 0x100}, s.mr.SGE(10, 20))
	relaxed, err := s.pd.Register(s.mem, verbs.AccessLocalWrite|verbs.AccessRelaxedOrdering)
	require.NoError(t, err)
	assert.Equal(t, uint32(0x200), relaxed.LKey())
	assert.Equal(t, uint32(1<<20|1), relaxed.RKey())
	require.ErrorContains(t, s.mem.Close(), "registered 2 times")
	buf, err := s.pd.RegisterDMABuf(0x12, 0x34, 4096, 0x1000, verbs.AccessRemoteRead)
	require.NoError(t, err)
	assert.Equal(t, uint32(0x3412), buf.LKey())
	assert.Equal(t, uint64(0x1000), buf.Addr())
	_, err = s.pd.RegisterDMABuf(0x12, 0, 4096, 0, 0)
	require.ErrorAs(t, err, new(*verbs.UnsupportedError))
	for _, fd := range []int{-1, 1 << 32} {
		_, err = s.pd.RegisterDMABuf(fd, 0x34, 4096, 0x1000, 0)
		require.ErrorContains(t, err, fmt.Sprintf("4096 bytes of dma-buf %d: at least 1 byte, and of a descriptor", fd))
	}
	_, err = s.pd.RegisterPages(0x7000, 1<<31, verbs.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.ENOMEM)
	assert.ErrorContains(t, err, "registering 2147483648 bytes: ibv_reg_mr on fake0")
}

func TestRequestsAndCompletionsCrossUnchanged(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{MaxSendSGE: 3, MaxRecvSGE: 2})
	assert.Equal(t, verbs.QPLimits{MaxSend: 129, MaxRecv: 130, MaxSendSGE: 3, MaxRecvSGE: 2, MaxInline: 64}, s.qp.Limits())
	s.connect(t)
	mem := s.mem.Bytes()
	copy(mem, "payload and flag")
	to := func(at int) verbs.SendWR { return verbs.SendWR{RemoteAddr: s.mr.Addr() + uint64(at), RKey: 1} }
	write := to(4096)
	write.SGE = []verbs.SGE{s.mr.SGE(0, 7), s.mr.SGE(11, 5)}
	read := to(4096)
	read.ID, read.Op, read.Flags, read.SGE = 2, verbs.OpRead, verbs.SendSignaled, []verbs.SGE{s.mr.SGE(100, 12)}
	n, err := s.qp.PostSend(write, read)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	assert.Equal(t, "payload flag", string(mem[100:112]), "gathered from two entries, and read back")
	wc := s.poll(t, 1)[0]
	assert.Equal(t, verbs.WC{ID: 2, Op: verbs.CompletedRead, QPN: s.qp.QPN(), VendorErr: 0x51}, wc)

	n, err = s.qp.PostRecv(verbs.RecvWR{ID: 0x8000000000000001, SGE: []verbs.SGE{s.mr.SGE(200, 2), s.mr.SGE(300, 50)}}, verbs.RecvWR{ID: 4})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	imm := to(5000)
	imm.Op, imm.Imm, imm.SGE = verbs.OpWriteImm, 0x01020304, []verbs.SGE{s.mr.SGE(0, 3)}
	n, err = s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{s.mr.SGE(0, 7)}}, imm)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	assert.Equal(t, []verbs.WC{
		{ID: 0x8000000000000001, Op: verbs.CompletedRecv, Bytes: 7, QPN: s.qp.QPN(), SrcQP: s.qp.QPN()},
		{ID: 4, Op: verbs.CompletedRecvWrite, Imm: 0x01020304, Flags: verbs.CompletionImm, QPN: s.qp.QPN(), SrcQP: s.qp.QPN()},
	}, s.poll(t, 2))
	assert.Equal(t, "pa", string(mem[200:202]))
	assert.Equal(t, "yload", string(mem[300:305]))
}

func TestAChainIsPostedUpToTheRequestThatIsRefused(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{SignalAll: true})
	for name, broken := range map[string]int{"first": 0, "in the first batch": 5, "first of the second": 32, "in the third": 70, "last": 79} {
		s.connect(t)
		chain := make([]verbs.SendWR, 80)
		for i := range chain {
			chain[i] = verbs.SendWR{ID: uint64(i), RemoteAddr: s.mr.Addr() + 4096 + uint64(i), SGE: []verbs.SGE{s.mr.SGE(i, 1)}}
			s.mem.Bytes()[i], s.mem.Bytes()[4096+i] = byte(i+1), 0
		}
		chain[broken].SGE = []verbs.SGE{s.mr.SGE(0, 1), s.mr.SGE(0, 1)}
		n, err := s.qp.PostSend(chain...)
		require.EqualError(t, err, "ibv_post_send on fake0: invalid argument (errno 22)", name)
		assert.Equal(t, broken, n, name)
		for i, wc := range s.poll(t, broken) {
			assert.Equal(t, uint64(i), wc.ID, name)
		}
		assert.Equal(t, s.mem.Bytes()[:broken], s.mem.Bytes()[4096:4096+broken], name)
		assert.Zero(t, s.mem.Bytes()[4096+broken], name)
		require.NoError(t, s.qp.Reset())
	}
	for range 2 {
		n, err := s.qp.PostSend()
		require.NoError(t, err)
		assert.Zero(t, n)
	}
	receives := make([]verbs.RecvWR, 70)
	n, err := s.qp.PostRecv(receives...)
	require.ErrorIs(t, err, syscall.ENOMEM)
	assert.Equal(t, 64, n)
}

func TestTheCauseIsWhatFailedFirstAndNoFlush(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	s.connect(t)
	_, err := s.qp.PostRecv(verbs.RecvWR{ID: 9})
	require.NoError(t, err)
	bad := verbs.SendWR{ID: 1, RemoteAddr: s.mr.Addr(), RKey: 0xbad, SGE: []verbs.SGE{s.mr.SGE(0, 1)}}
	_, err = s.qp.PostSend(bad, bad, bad)
	require.NoError(t, err)
	require.NoError(t, s.qp.Err(), "nothing was polled")
	wc := s.poll(t, 4)
	assert.Equal(t, []verbs.Status{verbs.StatusRemoteAccess, verbs.StatusFlushed, verbs.StatusFlushed, verbs.StatusFlushed},
		[]verbs.Status{wc[0].Status, wc[1].Status, wc[2].Status, wc[3].Status})
	require.EqualError(t, s.qp.Err(), s.cq.Err(wc[0]).Error())
	assert.NotErrorIs(t, s.qp.Err(), verbs.ErrFlushed)
	require.NoError(t, s.qp.Reset())
	require.NoError(t, s.qp.Err(), "a queue pair that starts anew has not failed")

	s.connect(t)
	_, err = s.qp.PostRecv(verbs.RecvWR{ID: 9})
	require.NoError(t, err)
	require.NoError(t, s.qp.Fail())
	event, err := s.c.NextEvent(within(t))
	require.NoError(t, err)
	assert.Equal(t, verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: s.qp}, event)
	require.ErrorIs(t, s.cq.Err(s.poll(t, 1)[0]), verbs.ErrFlushed)
	require.ErrorIs(t, s.qp.Err(), verbs.ErrFlushed)
}

func TestAConnectionCrossesUnchanged(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	k := verbs.Connection{
		Remote: verbs.Endpoint{QPN: 0xabcdef, PSN: 0x123456, GID: verbs.GID{1, 2, 15: 3}, LID: 0x4567}, PSN: 0x654321, Port: 2, GIDIndex: 3, PKeyIndex: 1,
		Access: verbs.AccessRemoteRead, MTU: 2048, Timeout: 4096 << 5, Retries: 3, RNRRetries: 4, RNRTimer: 20 * time.Microsecond,
		ReadsOut: 5, ReadsIn: 7, HopLimit: 8, TrafficClass: 9, FlowLabel: 10, ServiceLevel: 11,
	}
	require.ErrorIs(t, s.qp.ReadyToSend(k), syscall.EINVAL, "not before it is ready to receive")
	require.EqualError(t, s.qp.ReadyToSend(k), fmt.Sprintf("verbs: queue pair %#x to RTS: ibv_modify_qp on fake0: invalid argument (errno 22)", s.qp.QPN()))
	require.ErrorContains(t, s.qp.Init(verbs.Connection{PKeyIndex: 1 << 16}), "Connection.PKeyIndex is 65536: 0 to 65535")
	require.NoError(t, s.qp.Connect(k))
	state, got, err := s.qp.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.StateRTS, state)
	assert.Equal(t, k, got)
	require.NoError(t, s.qp.Reset())

	require.NoError(t, s.qp.Init(verbs.Connection{}))
	err = s.qp.ReadyToReceive(verbs.Connection{GIDIndex: 77, Remote: k.Remote})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	assert.ErrorContains(t, err, "from GID index 77 of port 1 to 102::3: ibv_modify_qp on fake0")
	require.NoError(t, s.qp.ReadyToReceive(verbs.Connection{}))
	_, got, err = s.qp.Query()
	require.NoError(t, err)
	assert.Equal(t, 1024, got.MTU, "the port's active one")
	in, err := s.qp.DataInOrder(verbs.OpWrite)
	require.NoError(t, err)
	assert.True(t, in)
	in, err = s.qp.DataInOrder(verbs.OpRead)
	require.NoError(t, err)
	assert.False(t, in)
}

func TestEventsWakeWhoWaitsAndEndByContextOrClose(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	s.connect(t)
	for solicited, flags := range map[bool]verbs.SendFlags{false: 0, true: verbs.SendSolicited} {
		require.NoError(t, s.cq.Arm(solicited))
		woken := make(chan error, 1)
		go func() {
			cq, err := s.ch.Wait(within(t))
			assert.Same(t, s.cq, cq)
			woken <- err
		}()
		_, err := s.qp.PostRecv(verbs.RecvWR{})
		require.NoError(t, err)
		_, err = s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: flags})
		require.NoError(t, err)
		require.NoError(t, <-woken)
		s.poll(t, 1)
	}
	_, err := s.c.PKey(1, 7)
	require.Error(t, err)
	event, err := s.c.NextEvent(within(t))
	require.NoError(t, err)
	assert.Equal(t, verbs.AsyncEvent{Type: verbs.EventPortError, Port: 1}, event)

	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { _, err := s.ch.Wait(ctx); ended <- err }()
		go func() { _, err := s.ch.Wait(ctx); ended <- err }()
		require.Eventually(t, s.ch.Waiting, time.Minute, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	_, there, err := s.ch.Event()
	require.NoError(t, err)
	assert.False(t, there)
	ended := make(chan error, 2)
	go func() { _, err := s.ch.Wait(t.Context()); ended <- err }()
	go func() { _, err := s.c.NextEvent(t.Context()); ended <- err }()
	require.Eventually(t, func() bool { return s.ch.Waiting() && s.c.Waiting() }, time.Minute, time.Millisecond)
	require.NoError(t, s.c.Close())
	require.ErrorIs(t, <-ended, os.ErrClosed)
	require.ErrorIs(t, <-ended, os.ErrClosed)
	assert.Equal(t, -1, s.c.EventFD())
}

func TestWhatIsStillUsedIsNotClosed(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	for call, o := range map[string]interface{ Close() error }{
		"ibv_dealloc_pd": s.pd, "ibv_destroy_cq": s.cq, "ibv_destroy_comp_channel": s.ch,
	} {
		err := o.Close()
		require.ErrorIs(t, err, syscall.EBUSY, call)
		assert.ErrorContains(t, err, call+" on fake0")
	}
	require.NoError(t, s.cq.Arm(false), "it is whole")
	require.NoError(t, s.c.Close(), "which closes all, the last first")
	require.NoError(t, s.mem.Close(), "nothing has it registered")
	for what, err := range map[string]error{
		"queue pair": s.qp.Init(verbs.Connection{}), "CQ": s.cq.Arm(false), "protection domain": second(s.pd.RegisterPages(4096, os.Getpagesize(), 0)),
		"completion channel": second3(s.ch.Event()), "fake0": second(s.c.GIDs()), "verbs: queue pair": second(s.qp.PostSend(verbs.SendWR{})),
		"verbs: CQ of fake0": second(s.cq.Poll(make([]verbs.WC, 1))), "file already closed": second(s.qp.PostRecv(verbs.RecvWR{})),
	} {
		require.ErrorIs(t, err, os.ErrClosed, what)
		assert.ErrorContains(t, err, what)
	}
	for _, o := range []interface{ Close() error }{s.c, s.ch, s.cq, s.pd, s.mr, s.qp, s.mem} {
		assert.NoError(t, o.Close())
	}
}

func second[T any](_ T, err error) error { return err }

func second3[T any](_ T, _ bool, err error) error { return err }

func TestSettingsOutOfBoundsAreNamed(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	other := open(t, fake(t, 1))
	foreign, err := other.NewCQ(verbs.CQConfig{})
	require.NoError(t, err)
	for says, f := range map[string]verbs.QPConfig{
		"QPConfig.SendCQ is nil":                                                            {},
		"QPConfig.SendCQ or RecvCQ is of another":                                           {SendCQ: s.cq, RecvCQ: foreign},
		"QPConfig.MaxSend is 1001: 1 to 1000":                                               {SendCQ: s.cq, MaxSend: 1001},
		"QPConfig.MaxRecv is 0: 1 to 1000":                                                  {SendCQ: s.cq, MaxRecv: -1},
		"QPConfig.MaxSendSGE is 5: 1 to 4 on fake0":                                         {SendCQ: s.cq, MaxSendSGE: 5},
		"QPConfig.MaxInline is 4294967296: 1 to 2147483647 on fake0":                        {SendCQ: s.cq, MaxInline: 1 << 32},
		"QPConfig.MaxRecvSGE is 5: 1 to 4":                                                  {SendCQ: s.cq, MaxRecvSGE: 5},
		"a queue pair of 128 sends, 128 receives, 513 bytes inline: ibv_create_qp on fake0": {SendCQ: s.cq, MaxInline: 513},
	} {
		_, err := s.pd.NewQP(f)
		require.ErrorContains(t, err, says)
	}
	for says, f := range map[string]verbs.CQConfig{
		"CQConfig.Entries is 4097: 1 to 4096 on fake0": {Entries: 4097},
		"CQConfig.Entries is -1":                       {Entries: -1},
		"CQConfig.Vector is 4294967296: 0 or more on":  {Vector: 1 << 32},
		"CQConfig.Vector is -1: 0 or more on fake0":    {Vector: -1},
		"CQConfig.Channel is of another":               {Channel: second2(other.NewChannel())},
		"a CQ of 256 entries: ibv_create_cq on fake0":  {Vector: 3},
	} {
		_, err := s.c.NewCQ(f)
		require.ErrorContains(t, err, says)
	}
	none, err := s.pd.NewQP(verbs.QPConfig{SendCQ: s.cq, MaxInline: -1})
	require.NoError(t, err)
	assert.Zero(t, none.Limits().MaxInline)
}

func second2[T any](v T, _ error) T { return v }

func TestPostingAndPollingAllocateNothing(t *testing.T) {
	s := newSelf(t, verbs.QPConfig{})
	s.connect(t)
	wc := make([]verbs.WC, 4)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, err := s.qp.PostRecv(verbs.RecvWR{SGE: []verbs.SGE{s.mr.SGE(0, 8)}})
		if err == nil {
			_, err = s.qp.PostSend(
				verbs.SendWR{RemoteAddr: s.mr.Addr(), SGE: []verbs.SGE{s.mr.SGE(0, 8)}},
				verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled, SGE: []verbs.SGE{s.mr.SGE(0, 8)}})
		}
		if n, failed := s.cq.Poll(wc); n != 2 || failed != nil || err != nil {
			t.Error(n, failed, err)
		}
	}))
}

// A chain's way to the library and back, whose own work is two copies of 8 bytes.
func BenchmarkAChainOfTwo(b *testing.B) {
	s := newSelf(b, verbs.QPConfig{})
	s.connect(b)
	payload, flag := s.mr.SGE(0, 8), s.mr.SGE(64, 8)
	for b.Loop() {
		if _, err := s.qp.PostSend(
			verbs.SendWR{RemoteAddr: s.mr.Addr() + 4096, SGE: []verbs.SGE{payload}},
			verbs.SendWR{RemoteAddr: s.mr.Addr() + 4160, Flags: verbs.SendInline, SGE: []verbs.SGE{flag}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAPollOfAnEmptyCQ(b *testing.B) {
	s := newSelf(b, verbs.QPConfig{})
	wc := make([]verbs.WC, 16)
	for b.Loop() {
		if _, err := s.cq.Poll(wc); err != nil {
			b.Fatal(err)
		}
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
