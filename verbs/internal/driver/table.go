package driver

import "syscall"

// Symbol is an optional entry point.
type Symbol int

// The optional entry points, numbered as in verbsshim.h.
const (
	SymbolDeviceIndex Symbol = iota // ibv_get_device_index
	SymbolGIDTable                  // _ibv_query_gid_table
	SymbolRegisterOrd               // ibv_reg_mr_iova2: relaxed ordering
	SymbolDMABuf                    // ibv_reg_dmabuf_mr
	SymbolDataInOrder               // ibv_query_qp_data_in_order
)

// Table is what package verbs calls. It is safe for concurrent use, but for two calls about one object of which one destroys it:
// package verbs keeps those apart. A call that is absent returns ENOSYS.
type Table interface {
	Library() string // the file, or a stand-in's name
	Has(Symbol) bool
	Absence() string // where Devices has none: why, and what to do; "" where the table does not know

	Devices() ([]Device, syscall.Errno)               // ENOSYS: no RDMA in this kernel
	Open(device string) (uintptr, syscall.Errno)      // a context
	Close(context uintptr) syscall.Errno              // nothing of it is left by then
	Attr(context uintptr) (DeviceAttr, syscall.Errno) // limits
	Port(context uintptr, port int) (Port, syscall.Errno)
	GIDs(context uintptr) ([]GID, syscall.Errno) // of all ports, by port and index, empty slots left out
	PKey(context uintptr, port, index int) (uint16, syscall.Errno)

	AllocPD(context uintptr) (uintptr, syscall.Errno)
	FreePD(pd uintptr) syscall.Errno // EBUSY: something of it is left
	Register(pd, addr uintptr, bytes int, access uint32) (MR, syscall.Errno)
	RegisterDMABuf(pd uintptr, fd int, offset uint64, bytes int, iova uint64, access uint32) (MR, syscall.Errno)
	Deregister(mr uintptr) syscall.Errno

	// CreateChannel gives a descriptor that is readable while an event waits; it stays the table's. -1: events cannot be waited for.
	CreateChannel(context uintptr) (channel uintptr, fd int, e syscall.Errno)
	DestroyChannel(channel uintptr) syscall.Errno
	CQEvent(channel uintptr) (cq uintptr, e syscall.Errno) // taken and acknowledged; EAGAIN: there is none
	CreateCQ(context uintptr, entries int, channel uintptr, vector int) (cq uintptr, capacity int, e syscall.Errno)
	DestroyCQ(cq uintptr) syscall.Errno
	Arm(cq uintptr, solicited bool) syscall.Errno // one event at the next completion
	Poll(cq uintptr, wc []WC) (int, syscall.Errno)

	CreateQP(pd uintptr, c QPConfig) (QP, syscall.Errno)
	ModifyQP(qp uintptr, a *QPAttr, mask uint32) syscall.Errno
	QueryQP(qp uintptr, mask uint32) (QPAttr, syscall.Errno)
	DestroyQP(qp uintptr) syscall.Errno
	DataInOrder(qp uintptr, op uint32) (bool, syscall.Errno)
	// The requests take their entries from sge one after the other. posted counts those before the first that was refused.
	PostSend(qp uintptr, wr []SendWR, sge []SGE) (posted int, e syscall.Errno)
	PostRecv(qp uintptr, wr []RecvWR, sge []SGE) (posted int, e syscall.Errno)

	AsyncFD(context uintptr) int                       // as CreateChannel's
	AsyncEvent(context uintptr) (Async, syscall.Errno) // taken and acknowledged; EAGAIN: there is none
}

// Device is an entry of ibv_get_device_list.
type Device struct {
	Name, Node string // rxe0, uverbs0
	GUID       uint64 // in host order
	Index      int    // the kernel's, or -1
	NodeType   int    // enum ibv_node_type
	Transport  int    // enum ibv_transport_type
}

// DeviceAttr is a part of ibv_device_attr.
type DeviceAttr struct {
	Firmware                              string
	NodeGUID, MaxMRBytes                  uint64 // the GUID in host order
	VendorID, PartID, HardwareVersion     uint32
	MaxQP, MaxQPWR, MaxSGE, MaxCQ, MaxCQE int
	MaxMR, MaxPD, MaxReadsIn, MaxReadsOut int // max_qp_rd_atom, max_qp_init_rd_atom
	PKeys, Ports                          int
}

// Port is a part of ibv_port_attr, in the C enums' numbers.
type Port struct {
	State, PhysicalState, MaxMTU, ActiveMTU, LinkLayer uint32
	Width, Speed, Capabilities, MaxMessage             uint32
	GIDs, PKeys, LID, SMLID, LMC                       uint32 // of the first two: the tables' lengths
}

// GID is a slot that is not empty.
type GID struct {
	GID         [16]byte
	Index, Port uint32
	Type        uint32 // 0 InfiniBand, 1 RoCE v1, 2 RoCE v2
	Interface   uint32 // its network interface's index, or 0
	NetDev      string // and name, or ""
}

// MR is registered memory.
type MR struct {
	Handle     uintptr
	LKey, RKey uint32
}

// QPConfig is a reliable connected queue pair to be.
type QPConfig struct {
	SendCQ, RecvCQ                               uintptr
	SendWRs, RecvWRs, SendSGEs, RecvSGEs, Inline uint32
	SignalAll                                    bool
}

// QP is one that was made, with what it got.
type QP struct {
	Handle                                       uintptr
	Number                                       uint32
	SendWRs, RecvWRs, SendSGEs, RecvSGEs, Inline uint32
}

// QPAttr is ibv_qp_attr for a reliable connection, in the C enums' numbers.
type QPAttr struct {
	State, MTU, Access, PKeyIndex, Port                  uint32
	DestQPN, RQPSN, SQPSN                                uint32
	MaxReadsOut, MaxReadsIn                              uint32 // max_rd_atomic, max_dest_rd_atomic
	MinRNRTimer, Timeout, RetryCount, RNRRetry           uint32
	Global, SGIDIndex, HopLimit, TrafficClass, FlowLabel uint32
	DLID, SL                                             uint32
	GID                                                  [16]byte // the peer's
}

// SGE is ibv_sge.
type SGE struct {
	Addr         uint64
	Length, LKey uint32
}

// SendWR is ibv_send_wr without its lists: SGEs counts the entries that are its.
type SendWR struct {
	ID, RemoteAddr       uint64
	RKey, Op, Flags, Imm uint32 // Imm in host order
	SGEs, _              uint32
}

// RecvWR is ibv_recv_wr.
type RecvWR struct {
	ID      uint64
	SGEs, _ uint32
}

// WC is ibv_wc. Of one that failed only ID, Status, VendorErr and QPN are worth anything.
type WC struct {
	ID                uint64
	Status, Op        uint32
	VendorErr, Bytes  uint32
	Imm               uint32 // in host order, where Flags has 2
	QPN, SrcQP, Flags uint32
}

// Async is ibv_async_event. Handle is the CQ's or QP's, or 0; Port is the port's, or 0.
type Async struct {
	Type   uint32
	Port   int
	Handle uintptr
}
