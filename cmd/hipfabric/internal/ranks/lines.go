package ranks

import (
	"bytes"
	"io"
	"sync"
)

// maxLine bounds what a rank that never ends its line makes us hold; a longer line is cut in pieces.
const maxLine = 1 << 20

// lines is one stream of a rank: it hands on whole lines, each with a prefix, so that ranks never mix within a line.
type lines struct {
	to     *sink
	prefix string
	buf    []byte
}

// sink is where the streams of all ranks go, a line at a time. It keeps the first failure.
type sink struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (s *sink) write(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(line); s.err == nil {
		s.err = err
	}
}

func (s *sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Write never fails: a rank must not end because nobody reads its output. The Job says so at its end.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		next := i + 1
		if ends := len(l.buf) + i; ends > maxLine || i < 0 && len(l.buf)+len(p) > maxLine {
			i = maxLine - len(l.buf)
			next = i
		}
		if i < 0 {
			break
		}
		l.emit(p[:i])
		p = p[next:]
	}
	l.buf = append(l.buf, p...)
	return n, nil
}

// emit writes prefix, what was kept, rest and a newline at once.
func (l *lines) emit(rest []byte) {
	line := make([]byte, 0, len(l.prefix)+len(l.buf)+len(rest)+1)
	line = append(line, l.prefix...)
	line = append(line, l.buf...)
	line = append(line, rest...)
	line = append(line, '\n')
	l.buf = l.buf[:0]
	l.to.write(line)
}

// end hands on a last line that had no newline.
func (l *lines) end() {
	if len(l.buf) > 0 {
		l.emit(nil)
	}
}
