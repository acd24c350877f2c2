package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

func TestErrorsNameCallDeviceAndErrno(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", &Error{Call: "ibv_reg_mr", Device: "rxe0", Errno: syscall.ENOMEM})
	assert.EqualError(t, err, fmt.Sprintf("wrapped: ibv_reg_mr on rxe0: %v (errno %d)", syscall.ENOMEM, int(syscall.ENOMEM)))
	assert.ErrorIs(t, err, syscall.ENOMEM)
	assert.EqualError(t, &Error{Call: "ibv_get_device_list", Errno: syscall.EIO}, fmt.Sprintf("ibv_get_device_list: %v (errno %d)", syscall.EIO, int(syscall.EIO)))
	assert.NoError(t, (&Context{}).check("ibv_x", 0))
	assert.ErrorIs(t, &UnsupportedError{}, errors.ErrUnsupported)
	assert.ErrorIs(t, ErrNoDevice, errors.ErrUnsupported)
}

func TestAFlushedCompletionIsNeverTheCauseOfAnother(t *testing.T) {
	flushed := &CompletionError{Device: "rxe0", QPN: 0x11, WRID: 1, Status: StatusFlushed}
	later := &CompletionError{Device: "rxe0", QPN: 0x11, WRID: 2, Status: StatusFlushed}
	real1 := &CompletionError{Device: "rxe0", QPN: 0x12, WRID: 0x2a, Status: StatusRetryExceeded, VendorErr: 0x81}
	real2 := &CompletionError{Device: "rxe0", QPN: 0x13, Status: StatusRemoteAccess}
	assert.EqualError(t, real1, "work 0x2a of queue pair 0x12 on rxe0: transport retry counter exceeded (status 12, vendor error 0x81)")
	assert.ErrorIs(t, flushed, ErrFlushed)
	assert.NotErrorIs(t, real1, ErrFlushed)
	assert.NoError(t, Cause())
	assert.NoError(t, Cause(nil, nil))
	assert.Same(t, flushed, Cause(nil, flushed, later))
	assert.Same(t, real1, Cause(flushed, fmt.Errorf("x: %w", flushed), real1, real2))

	var q QP
	for _, step := range [][2]error{{flushed, flushed}, {later, flushed}, {real1, real1}, {real2, real1}, {later, real1}} {
		q.note(step[0])
		assert.Same(t, step[1], q.Err())
	}
}

func TestTextsAreLibibverbs(t *testing.T) {
	assert.Equal(t, "remote access error", StatusRemoteAccess.String())
	assert.Equal(t, "RNR retry counter exceeded", StatusRNRRetryExceeded.String())
	assert.Equal(t, "general error", StatusGeneral.String())
	assert.Equal(t, "unknown status 99", Status(99).String())
	assert.Len(t, statusNames, 24)
	assert.Equal(t, "port error, port 1", AsyncEvent{Type: EventPortError, Port: 1}.String())
	assert.Equal(t, "GID table change", EventGIDChange.String())
	assert.Equal(t, "unknown event 20", EventType(20).String())
	assert.Equal(t, "local work queue catastrophic error, queue pair 0x12", AsyncEvent{Type: EventQPFatal, QP: &QP{number: 0x12}}.String())
	assert.Equal(t, []string{"RTS", "ERR", "state 9"}, []string{StateRTS.String(), StateErr.String(), State(9).String()})
	assert.Equal(t, []string{"active", "port state 9"}, []string{PortActive.String(), PortState(9).String()})
	assert.Equal(t, []string{"RoCE v2", "GID type 7"}, []string{GIDRoCEv2.String(), GIDType(7).String()})
	assert.Equal(t, []string{"Ethernet", "link layer 7"}, []string{LinkEthernet.String(), LinkLayer(7).String()})
	assert.Equal(t, []string{"read", "unknown operation"}, []string{OpRead.String(), Op(77).String()})
}

func TestAGIDIsAnIPAddress(t *testing.T) {
	g := GID{10: 0xff, 0xff, 10, 0, 12, 1}
	assert.Equal(t, netip.MustParseAddr("10.0.12.1"), g.Addr())
	assert.Equal(t, "::ffff:10.0.12.1", g.String())
	assert.False(t, g.IsZero())
	assert.True(t, GID{}.IsZero())
	assert.True(t, GID{0: 0xfe, 1: 0x80, 15: 3}.Addr().IsLinkLocalUnicast())
}

func TestTimersAreTheShortestThatAreLongEnough(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		1: 8192, 8192: 8192, 8193: 16384, 67 * time.Millisecond: 4096 << 14, timeoutOf(31): 4096 << 31,
	} {
		assert.Equal(t, want, timeoutOf(timeoutCode(d)), d)
	}
	assert.Equal(t, uint32(14), timeoutCode(Connection{}.withDefaults().Timeout))
	assert.Equal(t, uint32(12), rnrCode(Connection{}.withDefaults().RNRTimer))
	for code := range uint32(32) {
		assert.Equal(t, code, rnrCode(rnrTimer(code)), code)
	}
	assert.Equal(t, uint32(1), rnrCode(1))
	assert.Equal(t, uint32(0), rnrCode(longestRNR), "the longest has the code 0")
	assert.Equal(t, uint32(13), rnrCode(641*time.Microsecond))
	for mtu := range uint32(8) {
		if bytes := mtuBytes(mtu); bytes != 0 {
			assert.Equal(t, mtu, mtuNumber(bytes))
		}
	}
	assert.Equal(t, []uint32{0, 0, 5}, []uint32{mtuNumber(0), mtuNumber(1500), mtuNumber(4096)})
	assert.Equal(t, int64(103_124_000_000), PortAttr{Width: 2, Speed: 32}.Rate())
	assert.Zero(t, PortAttr{Width: 3, Speed: 32}.Rate())
}

func TestAConnectionsDefaultsAndBounds(t *testing.T) {
	c := &Context{device: &Device{d: driver.Device{Name: "rxe0"}}, attr: driver.DeviceAttr{Ports: 1, MaxReadsIn: 16, MaxReadsOut: 8, MaxQPWR: 100, MaxSGE: 4}}
	k := Connection{}.withDefaults()
	require.NoError(t, k.validate(c))
	assert.Equal(t, Connection{
		Port: 1, Access: AccessRemoteWrite | AccessRemoteRead, Timeout: 4096 << 14, Retries: 6, RNRRetries: 6, RNRTimer: 640 * time.Microsecond,
		ReadsOut: 1, ReadsIn: 1, HopLimit: 64,
	}, k)
	none := Connection{Retries: -1, RNRRetries: -1, ReadsOut: -1, ReadsIn: -1, HopLimit: -1}.withDefaults()
	assert.Equal(t, [5]int{}, [5]int{none.Retries, none.RNRRetries, none.ReadsOut, none.ReadsIn, none.HopLimit})
	for says, k := range map[string]Connection{
		"Connection.Remote.QPN is 16777216: 0 to 16777215": {Remote: Endpoint{QPN: 1 << 24}},
		"Connection.Remote.PSN is 16777216: 0 to 16777215": {Remote: Endpoint{PSN: 1 << 24}},
		"Connection.PSN is 16777216: 0 to 16777215":        {PSN: 1 << 24},
		"Connection.GIDIndex is 256: 0 to 255":             {GIDIndex: 256},
		"Connection.GIDIndex is -1: 0 to 255":              {GIDIndex: -1},
		"Connection.PKeyIndex is 65536: 0 to 65535":        {PKeyIndex: 1 << 16},
		"Connection.Retries is 8: 0 to 7":                  {Retries: 8},
		"Connection.RNRRetries is 8: 0 to 7":               {RNRRetries: 8},
		"Connection.ReadsOut is 9: 0 to 8":                 {ReadsOut: 9},
		"Connection.ReadsIn is 17: 0 to 16":                {ReadsIn: 17},
		"Connection.HopLimit is 256: 0 to 255":             {HopLimit: 256},
		"Connection.TrafficClass is 256: 0 to 255":         {TrafficClass: 256},
		"Connection.FlowLabel is 1048576: 0 to 1048575":    {FlowLabel: 1 << 20},
		"Connection.ServiceLevel is 16: 0 to 15":           {ServiceLevel: 16},
		"Connection.Timeout is 5h0m0s: 0 to 2h26m":         {Timeout: 5 * time.Hour},
		"Connection.RNRTimer is 1s: 0 to 655.36ms":         {RNRTimer: time.Second},
		"Connection.MTU is 1500: 256, 512, 1024, 2048":     {MTU: 1500},
		"port 2 of rxe0: it has 1, numbered from 1":        {Port: 2},
	} {
		err := k.withDefaults().validate(c)
		require.ErrorContains(t, err, says)
		var bad interface{ Invalid() bool }
		assert.ErrorAs(t, err, &bad)
	}
}

func TestLockedMemoryIsComparedWithTheLimit(t *testing.T) {
	err := &Error{Call: "ibv_reg_mr", Device: "rxe0", Errno: syscall.ENOMEM}
	status := "Name:\tx\nVmLck:\t      12 kB\nVmPin:\t     200 kB\nVmHWM:\t 5 kB\n"
	assert.Equal(t, uint64(200<<10), pinned(strings.NewReader(status)))
	for _, bad := range []string{"", "VmPin:\tmany\n", "VmPin:\t99999999999999999999 kB\n"} {
		assert.Zero(t, pinned(strings.NewReader(bad)))
	}
	assert.Same(t, err, beyond(err, 56<<10, 200<<10, 256<<10), "there was room: something else is out of memory")
	for _, c := range [][3]uint64{{56<<10 + 1, 200 << 10, 256 << 10}, {1 << 40, 0, 8 << 20}, {1, 9 << 20, 8 << 20}, {^uint64(0) - 8<<20, 9 << 20, 8 << 20}} {
		var low *MemlockError
		require.ErrorAs(t, beyond(err, c[0], c[1], c[2]), &low)
		assert.ErrorIs(t, low, syscall.ENOMEM)
		assert.ErrorContains(t, low, fmt.Sprintf("%d bytes more need to be locked, %d are, and the process's limit is %d: raise it by `ulimit -l unlimited`", c[0], c[1], c[2]))
	}
}

func TestOnlyWholePagesAreRegistered(t *testing.T) {
	pd := &PD{object{c: &Context{device: &Device{}}, over: true}}
	page := os.Getpagesize()
	for _, c := range []struct {
		addr  uintptr
		bytes int
	}{{0, page}, {1 << 30, 0}, {1 << 30, -page}, {1<<30 + 8, page}, {1 << 30, page - 1}, {1 << 30, page + 1}} {
		_, err := pd.RegisterPages(c.addr, c.bytes, AccessLocalWrite)
		require.ErrorContains(t, err, fmt.Sprintf("registering %d bytes at %#x: only whole pages of %d bytes can be", c.bytes, c.addr, page))
	}
	_, err := pd.RegisterPages(1<<30, page, AccessLocalWrite)
	require.ErrorIs(t, err, os.ErrClosed)
}
