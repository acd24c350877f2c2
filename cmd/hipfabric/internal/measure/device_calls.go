package measure

import "github.com/hipfabric/hipfabric/fabric"

// queued are the calls of a Device: each queues the operation on the device memory of the slices.
type queued struct{ *Device }

func (d queued) AllReduce(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error {
	return d.C.AllReduce(d.Stream, d.at(out), d.at(in), len(in)/dt.Size(), dt, op)
}

func (d queued) ReduceScatter(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error {
	return d.C.ReduceScatter(d.Stream, d.at(out), d.at(in), len(out)/dt.Size(), dt, op)
}

func (d queued) AllGather(out, in []byte) error {
	return d.C.AllGather(d.Stream, d.at(out), d.at(in), len(in))
}

func (d queued) AllGatherV(out, in []byte, stride int, lengths []int) error {
	return d.C.AllGatherV(d.Stream, d.at(out), d.at(in), stride, lengths)
}

func (d queued) AllGatherRows(out, in []byte, rowBytes int) error {
	return d.C.AllGatherRows(d.Stream, d.at(out), d.at(in), len(in), rowBytes)
}

func (d queued) Broadcast(buf []byte, root int) error {
	return d.C.Broadcast(d.Stream, d.at(buf), len(buf), root)
}

func (d queued) AllToAll(out, in []byte) error {
	return d.C.AllToAll(d.Stream, d.at(out), d.at(in), len(in)/d.C.World())
}

func (d queued) AllToAllV(out, in []byte, outLengths, inLengths []int) error {
	return d.C.AllToAllV(d.Stream, d.at(out), d.at(in), outLengths, inLengths)
}

func (d queued) Exchange(out, in []byte, peer int) error {
	return d.C.Exchange(d.Stream, d.at(out), d.at(in), len(in), peer)
}

func (d queued) SendRecv(send []byte, to int, recv []byte, from int) error {
	return d.C.SendRecv(d.Stream, d.at(send), len(send), to, d.at(recv), len(recv), from)
}

func (d queued) Send(buf []byte, peer int) error {
	return d.C.Send(d.Stream, d.at(buf), len(buf), peer)
}

func (d queued) Recv(buf []byte, peer int) error {
	return d.C.Recv(d.Stream, d.at(buf), len(buf), peer)
}

func (d queued) Barrier() error { return d.C.Barrier(d.Stream) }
