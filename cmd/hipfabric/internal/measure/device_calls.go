package measure

import "github.com/hipfabric/hipfabric/fabric"

// Each of these queues the operation on the device memory of the slices.

func (d *Device) AllReduce(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error {
	return d.C.AllReduce(d.Stream, d.at(out), d.at(in), len(in)/dt.Size(), dt, op)
}

func (d *Device) ReduceScatter(out, in []byte, dt fabric.DType, op fabric.ReduceOp) error {
	return d.C.ReduceScatter(d.Stream, d.at(out), d.at(in), len(out)/dt.Size(), dt, op)
}

func (d *Device) AllGather(out, in []byte) error {
	return d.C.AllGather(d.Stream, d.at(out), d.at(in), len(in))
}

func (d *Device) AllGatherV(out, in []byte, stride int, lengths []int) error {
	return d.C.AllGatherV(d.Stream, d.at(out), d.at(in), stride, lengths)
}

func (d *Device) AllGatherRows(out, in []byte, rowBytes int) error {
	return d.C.AllGatherRows(d.Stream, d.at(out), d.at(in), len(in), rowBytes)
}

func (d *Device) Broadcast(buf []byte, root int) error {
	return d.C.Broadcast(d.Stream, d.at(buf), len(buf), root)
}

func (d *Device) AllToAll(out, in []byte) error {
	return d.C.AllToAll(d.Stream, d.at(out), d.at(in), len(in)/d.C.World())
}

func (d *Device) AllToAllV(out, in []byte, outLengths, inLengths []int) error {
	return d.C.AllToAllV(d.Stream, d.at(out), d.at(in), outLengths, inLengths)
}

func (d *Device) Exchange(out, in []byte, peer int) error {
	return d.C.Exchange(d.Stream, d.at(out), d.at(in), len(in), peer)
}

func (d *Device) SendRecv(send []byte, to int, recv []byte, from int) error {
	return d.C.SendRecv(d.Stream, d.at(send), len(send), to, d.at(recv), len(recv), from)
}

func (d *Device) Send(buf []byte, peer int) error {
	return d.C.Send(d.Stream, d.at(buf), len(buf), peer)
}

func (d *Device) Recv(buf []byte, peer int) error {
	return d.C.Recv(d.Stream, d.at(buf), len(buf), peer)
}

func (d *Device) Barrier() error { return d.C.Barrier(d.Stream) }
