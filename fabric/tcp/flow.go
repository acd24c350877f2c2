package tcp

// flow is what one call moves between this rank and one peer: at most two spans each way.
type flow struct {
	window int // bytes that sending may run ahead of receiving; 0 is no bound

	out, in [2]span
	outs    int
	ins     int
	outAt   int // the span out that new parts are taken from
	open    int // bytes of the second span out that exist by now

	outLeft, inLeft int // parts
	begun           int // payload bytes of frames that a lane has taken
	sent, arrived   int // payload bytes of whole frames
	toSend, due     int // payload bytes of the call
	ahead           int // payload bytes worth reading with a header

	marks [4][]uint8 // of the spans, kept between calls
}

func (f *flow) reset() {
	f.outs, f.ins, f.outAt, f.open, f.outLeft, f.inLeft = 0, 0, 0, 0, 0, 0
	f.begun, f.sent, f.arrived, f.toSend, f.due, f.ahead = 0, 0, 0, 0, 0, 0
}

// addOut takes a span to send; addIn one to receive. A pair of several lanes marks each part.
func (f *flow) addOut(s span, marked bool) {
	if marked {
		f.mark(&s, f.outs)
	}
	f.out[f.outs] = s
	f.outs++
	f.outLeft += s.parts
	f.toSend += len(s.buf)
}

func (f *flow) addIn(s span, marked bool) {
	if marked {
		f.mark(&s, 2+f.ins)
	}
	f.in[f.ins] = s
	f.ins++
	f.inLeft += s.parts
	f.due += len(s.buf)
	if s.parts == 1 {
		f.ahead = max(f.ahead, len(s.buf))
	}
}

func (f *flow) mark(s *span, slot int) {
	if cap(f.marks[slot]) < s.parts {
		f.marks[slot] = make([]uint8, s.parts)
	}
	s.marks = f.marks[slot][:s.parts]
	clear(s.marks)
}

// allowed is how many payload bytes may have been sent by now: the bound that keeps both directions of a pair moving
// together, off once nothing more is due. arriving are bytes of frames not yet whole.
func (f *flow) allowed(arriving int) int {
	if f.window == 0 || f.toSend <= f.window {
		return f.toSend
	}
	arrived := f.arrived + arriving
	if arrived >= f.due {
		return f.toSend
	}
	return int(float64(arrived)*(float64(f.toSend)/float64(f.due))) + f.window
}

// brought is the share, 0 to 1, of what is due that has arrived; 2 when nothing more is.
func (f *flow) brought() float64 {
	if f.inLeft == 0 {
		return 2
	}
	return float64(f.arrived) / float64(max(f.due, 1))
}

// contributed is how many bytes of the first span in have arrived from its first on.
func (f *flow) contributed() int { return f.in[0].contiguous() }

// incoming is the first span in that is not whole, nil when all are.
func (f *flow) incoming() *span {
	for i := range f.ins {
		if !f.in[i].finished() {
			return &f.in[i]
		}
	}
	return nil
}

// outgoing is the first span out that is not sent, nil when all are.
func (f *flow) outgoing() *span {
	for i := range f.outs {
		if !f.out[i].finished() {
			return &f.out[i]
		}
	}
	return nil
}
