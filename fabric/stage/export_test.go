package stage

// LeaveRoom takes away all descriptors but n.
func (t *Transport) LeaveRoom(n int) {
	table := &t.gate.(*kernelsGate).table
	table.size = uint32(len(table.chunks)*tableChunk - n)
}

// ArgClock is where a kernel's argument has the clock's rate.
const ArgClock = argClock

// ArgTimeout is where it has the nanoseconds that the kernel waits.
const ArgTimeout = argTimeout
