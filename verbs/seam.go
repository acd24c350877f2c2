package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Seam is a library in raw handles and built-in types, for code that must not import this package: what fabric/roce calls Driver.
// Its handles are numbers of its own, never 0 and never given twice; one that is closed is an error that is os.ErrClosed. It is safe
// for concurrent use.
type Seam struct {
	l     *Library
	given handles
}

// Seam gives the library so, with handles of its own. What they stand for lasts until Close of each.
func (l *Library) Seam() *Seam { return &Seam{l: l} }

// Types that Seam's methods name are aliases of types without a name, which a package that does not import this one can declare too.
type (
	// SeamRegion is registered memory.
	SeamRegion = struct {
		Handle     uintptr
		LKey, RKey uint32
	}
	// SeamQP is a queue pair that is not connected.
	SeamQP = struct {
		Handle  uintptr
		Number  uint32
		Inline  int  // bytes of an inline request
		InOrder bool // what InOrder says at this time
	}
	// SeamConnection is a queue pair's way to its peer: Connection's fields, with their defaults.
	SeamConnection = struct {
		Port, GIDIndex, MTU    int
		PSN                    uint32
		PeerQPN, PeerPSN       uint32
		PeerGID                [16]byte
		Timeout                time.Duration
		Retries                int
		TrafficClass, HopLimit int
	}
	// SeamEvent is something that happened to a device.
	SeamEvent = struct {
		Text                                               string
		Port                                               int    // 0: not of a port
		QPN                                                uint32 // 0: not of a queue pair that is open
		Fatal, PortDown, PortUp, QPFatal, AddressesChanged bool
	}
)

// hca is a device that the seam opened: all its queue pairs share a protection domain and a CQ.
type hca struct {
	*Context
	pd *PD
	cq *CQ
}

// String is the library's file.
func (s *Seam) String() string { return s.l.Path() }

// Open opens a device for queue pairs whose completions, not polled, are never more than entries. Errors: Library.Device's,
// Device.Open's; entries beyond the device's.
func (s *Seam) Open(device string, entries int) (uintptr, error) {
	d, err := s.l.Device(device)
	if err != nil {
		return 0, err
	}
	if entries < 1 {
		return 0, invalid("completions of %s: room for %d: 1 or more", device, entries)
	}
	c, err := d.Open()
	if err != nil {
		return 0, err
	}
	h := &hca{Context: c}
	if h.pd, err = c.NewPD(); err == nil {
		h.cq, err = c.NewCQ(CQConfig{Entries: entries})
	}
	if err != nil {
		return 0, errors.Join(err, c.Close())
	}
	return s.given.give(h, h)
}

// Alloc gives zeroed memory in pages of its own. Close of the handle gives them back, and refuses while some of it is registered.
func (s *Seam) Alloc(bytes int) (mem []byte, handle uintptr, err error) {
	m, err := NewMemory(bytes)
	if err != nil {
		return nil, 0, err
	}
	if handle, err = s.given.give(m, nil); err != nil {
		return nil, 0, err
	}
	return m.Bytes(), handle, nil
}

// Register lets an HCA at mem until Close of the region's handle or of the HCA, and with remote peers too, to write. mem is Alloc's, or of it from
// the beginning of a page on, or whole pages that are somebody else's, as PD.RegisterPages wants them. Errors: PD.Register's.
func (s *Seam) Register(hca uintptr, mem []byte, remote bool) (SeamRegion, error) {
	h, err := s.hca(hca)
	if err != nil {
		return SeamRegion{}, err
	}
	access := AccessLocalWrite // without it an untouched page may be pinned as the kernel's page of zeroes
	if remote {
		access |= AccessRemoteWrite
	}
	mr, err := s.register(h.pd, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), len(mem), access)
	if err != nil {
		return SeamRegion{}, err
	}
	handle, err := s.given.give(mr, h)
	return SeamRegion{Handle: handle, LKey: mr.LKey(), RKey: mr.RKey()}, err
}

func (s *Seam) register(pd *PD, addr uintptr, bytes int, access Access) (*MR, error) {
	for _, g := range s.given.all() {
		if m, ours := g.of.(*Memory); ours && m.has(addr, bytes) {
			return pd.registerWithin(m, addr, bytes, access)
		}
	}
	return pd.RegisterPages(addr, bytes, access)
}

// NewQP makes a queue pair for send requests of two pieces and receive receives of none that are posted and not completed, with inline
// bytes at least in an inline request. Errors: PD.NewQP's.
func (s *Seam) NewQP(hca uintptr, port, send, receive, inline int) (SeamQP, error) {
	h, err := s.hca(hca)
	if err != nil {
		return SeamQP{}, err
	}
	if err := h.checkPort(port); err != nil {
		return SeamQP{}, err
	}
	q, err := h.pd.NewQP(QPConfig{SendCQ: h.cq, MaxSend: least(send), MaxRecv: max(receive, 1), MaxSendSGE: len(SeamWork{}.Pieces), MaxInline: least(inline)})
	if err != nil {
		return SeamQP{}, err
	}
	in, err := q.inOrder()
	if err != nil {
		return SeamQP{}, errors.Join(err, q.Close())
	}
	handle, err := s.given.give(q, h)
	return SeamQP{Handle: handle, Number: q.QPN(), Inline: q.Limits().MaxInline, InOrder: in}, err
}

// least is a number where none is not the default.
func least(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// InOrder says whether the device promises that a peer's write of one request is placed here in the order of its bytes: false where the
// library cannot be asked. Some devices say yes of a connected queue pair only, so that the time to ask is after Connect.
func (s *Seam) InOrder(qp uintptr) (bool, error) {
	q, err := s.qp(qp)
	if err != nil {
		return false, err
	}
	return q.inOrder()
}

func (q *QP) inOrder() (bool, error) {
	in, err := q.DataInOrder(OpWrite)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return in, err
}

// Connect takes the queue pair from reset to RTS. Peers may write. Errors: QP.Connect's.
func (s *Seam) Connect(qp uintptr, to SeamConnection) error {
	q, err := s.qp(qp)
	if err != nil {
		return err
	}
	return q.Connect(Connection{
		Remote: Endpoint{QPN: to.PeerQPN, PSN: to.PeerPSN, GID: to.PeerGID}, PSN: to.PSN, Port: to.Port, GIDIndex: to.GIDIndex, MTU: to.MTU,
		Access: AccessLocalWrite | AccessRemoteWrite, Timeout: to.Timeout, Retries: to.Retries, HopLimit: to.HopLimit, TrafficClass: to.TrafficClass,
	})
}

// Fail is QP.Fail.
func (s *Seam) Fail(qp uintptr) error {
	q, err := s.qp(qp)
	if err != nil {
		return err
	}
	return q.Fail()
}

// NextEvent waits for the device's next event and takes it; one waits at a time. It ends by ctx, whose error it then returns, or by
// Close of the HCA: os.ErrClosed.
func (s *Seam) NextEvent(ctx context.Context, hca uintptr) (SeamEvent, error) {
	h, err := s.hca(hca)
	if err != nil {
		return SeamEvent{}, err
	}
	e, err := h.NextEvent(ctx)
	if err != nil {
		return SeamEvent{}, err
	}
	event := SeamEvent{Text: fmt.Sprintf("%s: %s", h.device.d.Name, e), Port: e.Port}
	if e.QP != nil {
		event.QPN = e.QP.number
	}
	switch e.Type {
	case EventDeviceFatal, EventCQError: // all queue pairs complete in one CQ
		event.Fatal = true
	case EventPortError:
		event.PortDown = true
	case EventPortActive:
		event.PortUp = true
	case EventQPFatal, EventQPRequest, EventQPAccess:
		event.QPFatal = true
	case EventGIDChange, EventLIDChange:
		event.AddressesChanged = true
	}
	return event, nil
}

// Close closes what has the handle: an HCA with all that is left of it. A second time it does nothing. What failed to close keeps its
// handle.
func (s *Seam) Close(handle uintptr) error {
	of := s.given.find(handle)
	if of == nil {
		return nil
	}
	if err := of.Close(); err != nil {
		return err
	}
	s.given.take(handle, of)
	return nil
}

// Left counts the handles that are not closed.
func (s *Seam) Left() int { return len(s.given.all()) }

func (s *Seam) hca(handle uintptr) (*hca, error) {
	h, there := s.given.find(handle).(*hca)
	if !there {
		return nil, stranger("HCA", handle)
	}
	return h, nil
}

func (s *Seam) qp(handle uintptr) (*QP, error) {
	q, there := s.given.find(handle).(*QP)
	if !there {
		return nil, stranger("queue pair", handle)
	}
	return q, nil
}

//go:noinline
func stranger(what string, handle uintptr) error {
	return closed(fmt.Sprintf("the %s of handle %#x", what, handle))
}
