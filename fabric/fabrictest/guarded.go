package fabrictest

import (
	"bytes"
	"fmt"
)

// guarded is a buffer between guards, for the tests of failures and of traffic.
type guarded struct {
	s     Subject
	whole Buffer
	Buffer
}

const guardByte = 0xee

func newGuarded(s Subject, n int) (*guarded, error) {
	whole, err := s.Alloc(n + 2*guardBytes)
	if err != nil {
		return nil, err
	}
	g := &guarded{s: s, whole: whole, Buffer: whole.Slice(guardBytes, guardBytes+n)}
	return g, s.Upload(whole, bytes.Repeat([]byte{guardByte}, n+2*guardBytes))
}

// holding is newGuarded with content.
func holding(s Subject, content []byte) (*guarded, error) {
	g, err := newGuarded(s, len(content))
	if err != nil {
		return nil, err
	}
	return g, s.Upload(g.Buffer, content)
}

// intact says which guard was written.
func (g *guarded) intact() error {
	for _, at := range []int{0, guardBytes + g.Len()} {
		b := make([]byte, guardBytes)
		if err := g.s.Download(b, g.whole.Slice(at, at+guardBytes)); err != nil {
			return err
		}
		for i := range b {
			if b[i] != guardByte {
				return fmt.Errorf("byte %d of a buffer of %d was written", at+i-guardBytes, g.Len())
			}
		}
	}
	return nil
}

// holds says how the content differs from want.
func (g *guarded) holds(want []byte) error {
	got := make([]byte, g.Len())
	if err := g.s.Download(got, g.Buffer); err != nil {
		return err
	}
	if err := g.intact(); err != nil {
		return err
	}
	return differ("out", got, want, 0, len(want))
}
