package fabric

// ownStreams are the raw values from which on a stream is an engine's own: below are the null stream, its legacy name and
// the calling thread's.
const ownStreams = 3

func checkStream(s Stream) error {
	if s < ownStreams {
		return Invalidf("stream %#x is the null stream, or what a thread has in its place: the null stream waits for other streams "+
			"and others for it; use a stream of your own", uintptr(s))
	}
	return nil
}

// checkDevice is check for buffers in device memory: whether they are there is the path's to say.
func checkDevice(c *Call, rank, world int) error {
	d := &c.Device
	switch {
	case len(c.In) > 0 || len(c.Out) > 0:
		return Invalidf("In and Out are of host memory; the buffers of a queued call are in Device")
	case c.Whole != 0 || c.FromWhole != 0 || c.Part != 0 || c.WholeHash != 0:
		return Invalidf("part %d of %d bytes; a queued call is whole, and its path cuts it", c.Part, c.Whole)
	case d.Lengths != 0 && (c.Op != AllGatherV || len(c.Lengths) > 0):
		return Invalidf("Device.Lengths is %#x; it is an all-gather-v's only, instead of Lengths", uintptr(d.Lengths))
	case d.Lengths%4 != 0:
		return Invalidf("Device.Lengths is %#x; int32 begin at a multiple of 4", uintptr(d.Lengths))
	}
	if err := checkRegion("in", d.In, d.InBytes); err != nil {
		return err
	}
	if err := checkRegion("out", d.Out, d.OutBytes); err != nil {
		return err
	}
	return check(c, region{uintptr(d.In), d.InBytes}, region{uintptr(d.Out), d.OutBytes}, rank, world)
}

func checkRegion(what string, at DevPtr, n int) error {
	switch {
	case n < 0 || n > maxAlloc:
		return Invalidf("%s has %d bytes; 0 to %d are possible", what, n, maxAlloc)
	case n > 0 && at == 0:
		return Invalidf("%s of %d bytes is a nil device address", what, n)
	case at+DevPtr(n) < at:
		return Invalidf("%s of %d bytes at %#x ends beyond the last address", what, n, uintptr(at))
	}
	return nil
}
