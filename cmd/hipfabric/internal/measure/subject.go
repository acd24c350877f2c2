package measure

import "github.com/hipfabric/hipfabric/fabric"

// Subject is whose calls are measured.
type Subject struct {
	Kind  string // "tcp", "staged"
	About string // what a table's title adds: the gate and the device; "" is nothing
	// Host makes the calls, unless Device does; the meetings between measurements, and the sums of what was wrong, are its.
	Host   *fabric.Collective
	Device *Device // nil: calls on host memory
}

// Peers counts what has moved between this rank and the others, for the calls that are measured.
func (s Subject) Peers() []fabric.PeerStats {
	if s.Device != nil {
		return s.Device.C.Stats().Transport.Peers
	}
	return s.Host.Stats().Transport.Peers
}

// calls are the operations, on host slices: those of a fabric.Collective; a Device has queued.
type calls interface {
	AllReduce(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error
	ReduceScatter(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error
	AllGather(out, in []byte) error
	AllGatherV(out, in []byte, stride int, lengths []int) error
	AllGatherRows(out, in []byte, rowBytes int) error
	Broadcast(buf []byte, root int) error
	AllToAll(out, in []byte) error
	AllToAllV(out, in []byte, outLengths, inLengths []int) error
	Exchange(out, in []byte, peer int) error
	SendRecv(send []byte, to int, recv []byte, from int) error
	Send(buf []byte, peer int) error
	Recv(buf []byte, peer int) error
	Barrier() error
}
