package flow

import "github.com/hipfabric/hipfabric/fabric/internal/frame"

// Flow is what one call moves between this rank and one peer: at most two spans each way.
type Flow struct {
	Peer   int
	Window int // bytes that sending may run ahead of receiving; 0 is no bound

	Out, In [2]Span
	Outs    int
	Ins     int
	OutAt   int // the span out that new parts are taken from
	Open    int // bytes of the second span out that exist by now

	OutLeft, InLeft int // parts
	Begun           int // payload bytes of frames that a lane has taken
	Sent, Arrived   int // payload bytes of whole frames
	ToSend, Due     int // payload bytes of the call
	Ahead           int // payload bytes worth reading with a header

	marks [4][]uint8 // of the spans, kept between calls
}

// Reset readies the flow for the next call.
func (f *Flow) Reset() {
	f.Outs, f.Ins, f.OutAt, f.Open, f.OutLeft, f.InLeft = 0, 0, 0, 0, 0, 0
	f.Begun, f.Sent, f.Arrived, f.ToSend, f.Due, f.Ahead = 0, 0, 0, 0, 0, 0
}

// AddOut takes a span to send, cut; AddIn one to receive. A pair of several lanes marks each part.
func (f *Flow) AddOut(s Span, marked bool) {
	if marked {
		f.mark(&s, f.Outs)
	}
	f.Out[f.Outs] = s
	f.Outs++
	f.OutLeft += s.Parts
	f.ToSend += len(s.Buf)
}

// AddIn is AddOut's counterpart.
func (f *Flow) AddIn(s Span, marked bool) {
	if marked {
		f.mark(&s, 2+f.Ins)
	}
	f.In[f.Ins] = s
	f.Ins++
	f.InLeft += s.Parts
	f.Due += len(s.Buf)
	if s.Parts == 1 {
		f.Ahead = max(f.Ahead, len(s.Buf))
	}
}

func (f *Flow) mark(s *Span, slot int) {
	if cap(f.marks[slot]) < s.Parts {
		f.marks[slot] = make([]uint8, s.Parts)
	}
	s.Marks = f.marks[slot][:s.Parts]
	clear(s.Marks)
}

// SentPart books a part that is sent.
func (f *Flow) SentPart(s *Span, part int) {
	f.Sent += len(s.At(part))
	s.Ended++
	f.OutLeft--
}

// Came books a part that has come, and says whether it was the last of the call's.
func (f *Flow) Came(s *Span, part int) (last bool) {
	f.Arrived += len(s.At(part))
	s.came(part)
	f.InLeft--
	return f.InLeft == 0
}

// SpanOf is the span in that a part of a step belongs to, if the call has it.
func (f *Flow) SpanOf(step frame.Step, part uint32) *Span {
	for i := range f.Ins {
		if s := &f.In[i]; s.Step == step && int64(part) < int64(s.Parts) {
			return s
		}
	}
	return nil
}

// Allowed is how many payload bytes may have been sent by now: the bound that keeps both directions of a pair moving
// together, off once nothing more is due. arriving are bytes of frames not yet whole.
func (f *Flow) Allowed(arriving int) int {
	if f.Window == 0 || f.ToSend <= f.Window {
		return f.ToSend
	}
	arrived := f.Arrived + arriving
	if arrived >= f.Due {
		return f.ToSend
	}
	return int(float64(arrived)*(float64(f.ToSend)/float64(f.Due))) + f.Window
}

// brought is the share, 0 to 1, of what is due that has arrived; 2 when nothing more is.
func (f *Flow) brought() float64 {
	if f.InLeft == 0 {
		return 2
	}
	return float64(f.Arrived) / float64(max(f.Due, 1))
}

// contributed is how many bytes of the first span in have arrived from its first on.
func (f *Flow) contributed() int { return f.In[0].contiguous() }

// Incoming is the first span in that is not whole, nil when all are.
func (f *Flow) Incoming() *Span {
	for i := range f.Ins {
		if !f.In[i].Finished() {
			return &f.In[i]
		}
	}
	return nil
}

// Outgoing is the first span out that is not sent, nil when all are.
func (f *Flow) Outgoing() *Span {
	for i := range f.Outs {
		if !f.Out[i].Finished() {
			return &f.Out[i]
		}
	}
	return nil
}
