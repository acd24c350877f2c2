package fabrictest

// pipe is the way from one rank to another: like a socket, it holds a bounded number of bytes, and keeps their order.
type pipe struct {
	bound    int
	messages []message
	held     int // bytes, headers counted
	bytes    uint64
	frames   uint64
}

// message is a header and as much of its payload as has been written and not yet read.
type message struct {
	header
	data []byte
	read int // bytes of the payload that have left
}

func (p *pipe) room() int { return p.bound - p.held }

// open begins a message, when there is room for a header.
func (p *pipe) open(h header) bool {
	if p.room() < headerBytes {
		return false
	}
	p.messages = append(p.messages, message{header: h})
	p.held += headerBytes
	p.bytes += headerBytes
	p.frames++
	return true
}

// write stages what fits of b, for the message opened last.
func (p *pipe) write(b []byte) int {
	n := max(0, min(p.room(), len(b)))
	m := &p.messages[len(p.messages)-1]
	m.data = append(m.data, b[:n]...)
	p.held += n
	p.bytes += uint64(n)
	return n
}

// front is the message to read next, or nil.
func (p *pipe) front() *message {
	if len(p.messages) == 0 {
		return nil
	}
	return &p.messages[0]
}

// take moves what is there of the front message's payload into b, and drops the message once it has all left.
func (p *pipe) take(b []byte) int {
	m := &p.messages[0]
	n := copy(b, m.data)
	m.data = m.data[n:]
	m.read += n
	p.held -= n
	if m.read == m.payload {
		p.held -= headerBytes
		p.messages = append(p.messages[:0], p.messages[1:]...)
	}
	return n
}
