package link

import (
	"io"
	"syscall"
)

// scratchBytes is how much of an unwanted payload is read at a time.
const scratchBytes = 64 << 10

// inbound is the frame being received. Its header comes first into stage; payload bytes that were read along with it
// follow there, and perhaps the beginning of the next frame.
type inbound struct {
	stage   []byte
	have    int    // bytes in stage
	ahead   int    // payload bytes that may be read into stage with the header
	direct  []byte // where a payload goes that is read with its header
	payload []byte // where it goes, once placed
	got     int    // bytes of it that have arrived
	whole   int    // bytes of it in all
	active  bool
	placed  bool
	scratch []byte // of a payload that nobody wants
	skipped bool
	vector  vector
}

// Expect begins to receive a frame, or goes on with one that Pause has stopped. With direct, its payload must be as
// long as direct, and is read into it together with the header, where it must not be used before the header was looked
// at. Without, up to ahead bytes of payload are read with the header, and Place says where they go.
func (c *Conn) Expect(ahead int, direct []byte) {
	in := &c.in
	in.active = true
	if in.have > 0 || in.placed {
		return // under way
	}
	if len(direct) <= inline {
		ahead, direct = max(ahead, len(direct)), nil
	}
	ahead = min(ahead, inline)
	if len(in.stage) < HeaderSize+ahead {
		in.stage = append(make([]byte, 0, HeaderSize+inline), in.stage[:in.have]...)[:HeaderSize+inline]
	}
	in.ahead, in.direct = ahead, direct
}

// Receiving says whether bytes are awaited.
func (c *Conn) Receiving() bool { return c.in.active }

// Pause leaves the rest of the frame under way, if any, to a later Expect.
func (c *Conn) Pause() { c.in.active = false }

// ReceivedHeader is the header of the frame under way, once HeaderReady, until Done.
func (c *Conn) ReceivedHeader() *[HeaderSize]byte { return (*[HeaderSize]byte)(c.in.stage) }

// HeaderReady says whether the whole header has arrived.
func (c *Conn) HeaderReady() bool { return c.in.have >= HeaderSize }

// Placed says whether the payload has its place.
func (c *Conn) Placed() bool { return c.in.placed }

// Place says where the payload of the frame goes, whose header was looked at, and puts there what has come of it. It
// stays the connection's until Done.
func (c *Conn) Place(dst []byte) {
	in := &c.in
	in.payload, in.whole, in.placed, in.skipped = dst, len(dst), true, false
	if in.direct == nil {
		in.got = copy(dst, in.stage[HeaderSize:in.have])
	}
}

// Skip drops the payload of the frame, n bytes.
func (c *Conn) Skip(n int) {
	in := &c.in
	in.payload, in.whole, in.placed, in.skipped = nil, n, true, true
	if in.direct == nil {
		in.got = min(n, in.have-HeaderSize)
	}
	if in.got < n && in.scratch == nil {
		in.scratch = make([]byte, scratchBytes)
	}
}

// PayloadReceived is how many bytes of the frame's payload have arrived.
func (c *Conn) PayloadReceived() int {
	if c.in.placed || c.in.direct != nil {
		return c.in.got
	}
	return 0
}

// Complete says whether the whole frame has arrived.
func (c *Conn) Complete() bool { return c.in.placed && c.in.got == c.in.whole }

// Done ends a complete frame: its payload is the caller's, and the next Expect begins another.
func (c *Conn) Done() {
	in := &c.in
	used := HeaderSize
	if in.direct == nil {
		used += min(in.whole, in.have-HeaderSize)
	}
	in.have = copy(in.stage, in.stage[used:in.have])
	in.payload, in.direct, in.got, in.whole, in.placed, in.active = nil, nil, 0, 0, false, false
	c.receivedFrames.Add(1)
}

// Fill reads what the socket has, of the frame under way and, into the stage, perhaps of the next one. It gives the
// bytes read, 0 when there are none now.
func (c *Conn) Fill() (int, error) {
	in := &c.in
	n, errno := c.read()
	switch {
	case errno == syscall.EAGAIN:
		c.Readable = false
		return 0, nil
	case errno != 0:
		return 0, &SocketError{"receive", errno}
	case n == 0:
		return 0, io.EOF
	}
	switch {
	case in.placed:
		in.got += n
	case in.direct != nil:
		head := min(n, HeaderSize-in.have)
		in.have += head
		in.got += n - head
	default:
		in.have += n
	}
	c.receivedBytes.Add(uint64(n))
	return n, nil
}

// room is where the next bytes go, most to one place: one run, or the rest of the header and a payload behind it.
func (in *inbound) room(most int) (head, body []byte) {
	switch {
	case in.skipped && in.placed:
		return in.scratch[:min(len(in.scratch), in.whole-in.got)], nil
	case in.placed:
		return in.payload[in.got:min(in.whole, in.got+most)], nil
	case in.direct != nil:
		return in.stage[in.have:HeaderSize], in.direct[:min(len(in.direct), most)]
	default:
		return in.stage[in.have : HeaderSize+in.ahead], nil
	}
}
