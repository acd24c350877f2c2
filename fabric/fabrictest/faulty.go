package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Mesh is what a socket path takes its connections from: tcp.Mesh, declared here so that this package needs no path.
type Mesh interface {
	Rank() int
	World() int
	ID() [16]byte
	Rails(peer int) []fabric.Rail
	Dial(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error)
	Accept(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error)
	AllGather(ctx context.Context, blob []byte) ([][]byte, error)
}

// FaultKind is what happens to a direction of a connection.
type FaultKind uint8

const (
	Drop    FaultKind = iota + 1 // bytes vanish: Bytes of them, 0 is all that follow
	Delay                        // bytes wait, until For has passed or Until is closed
	Cut                          // the connection is reset, both ways
	Corrupt                      // Bytes bytes, 0 is one, arrive with every bit turned
)

func (k FaultKind) String() string {
	switch k {
	case Drop:
		return "drop"
	case Delay:
		return "delay"
	case Cut:
		return "cut"
	case Corrupt:
		return "corrupt"
	default:
		return fmt.Sprintf("fault(%d)", uint8(k))
	}
}

// Fault is one event of a direction.
type Fault struct {
	Kind    FaultKind
	Peer    int   // of the connections dialled to this rank; -1 for all
	Inbound bool  // what the peer sends; else what goes to it
	Offset  int64 // before this byte of the direction, counted from 0 at the first byte that Dial's caller moves
	Bytes   int64 // Drop, Corrupt
	For     time.Duration
	Until   <-chan struct{} // Delay: instead of For
	Lanes   []int           // of the pair; nil for all
	Again   bool            // also on lanes that were dialled anew
}

// FaultyMesh is a Mesh whose dialled connections go through a proxy with faults. Only the dialling side of a pair has
// them: wrap the mesh of the rank that dials. Safe for concurrent use.
type FaultyMesh struct {
	Mesh
	plan []Fault

	mu     sync.Mutex
	open   []*net.TCPConn
	closed chan struct{}
	pumps  sync.WaitGroup
}

// Faulty puts plan between m's dialled connections and their users. Close it when the path is closed.
func Faulty(m Mesh, plan ...Fault) *FaultyMesh {
	return &FaultyMesh{Mesh: m, plan: plan, closed: make(chan struct{})}
}

// Dial connects as the Mesh does, and hands out the near end of a proxy on loopback.
func (f *FaultyMesh) Dial(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error) {
	far, err := f.Mesh.Dial(ctx, peer, lane)
	if err != nil {
		return nil, err
	}
	near, inner, err := loopback(ctx)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	f.mu.Lock()
	f.open = append(f.open, far, inner)
	f.mu.Unlock()
	var ends sync.WaitGroup
	ends.Go(func() { f.pump(far, inner, f.faults(peer, lane, false)) })
	ends.Go(func() { f.pump(inner, far, f.faults(peer, lane, true)) })
	f.pumps.Go(func() {
		ends.Wait()
		_, _ = far.Close(), inner.Close()
	})
	return near, nil
}

// loopback is a connection of this process with itself.
func loopback(ctx context.Context) (near, inner *net.TCPConn, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	near = c.(*net.TCPConn)
	for {
		if inner, err = l.AcceptTCP(); err != nil {
			return nil, nil, errors.Join(err, near.Close())
		}
		if inner.RemoteAddr().String() == near.LocalAddr().String() {
			return near, inner, nil
		}
		_ = inner.Close() // a stranger
	}
}

// faults is the plan of one direction, in order of offset.
func (f *FaultyMesh) faults(peer int, lane fabric.Lane, inbound bool) []Fault {
	var mine []Fault
	for _, x := range f.plan {
		ofLane := (x.Lanes == nil || slices.Contains(x.Lanes, lane.Index)) && (x.Again || lane.Generation == 0)
		if (x.Peer == peer || x.Peer < 0) && x.Inbound == inbound && ofLane {
			mine = append(mine, x)
		}
	}
	slices.SortStableFunc(mine, func(a, b Fault) int { return int(min(1, max(-1, a.Offset-b.Offset))) })
	return mine
}

// pump moves one direction until its end, a cut or Close.
func (f *FaultyMesh) pump(dst, src *net.TCPConn, faults []Fault) {
	d := direction{dst: dst, faults: faults, closed: f.closed}
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if !d.move(buf[:n]) {
			_, _ = src.SetLinger(0), dst.SetLinger(0) // resets, not ends
			// src first: the other pump, woken by dst's close, would end src in peace.
			_, _ = src.Close(), dst.Close()
			return
		}
		if err != nil {
			_ = dst.CloseWrite()
			return
		}
	}
}

// direction is how far a pump has come.
type direction struct {
	dst             *net.TCPConn
	faults          []Fault // not met yet
	at              int64
	dropping        int64 // bytes still to lose
	corrupting      int64 // bytes still to spoil
	droppingForever bool
	closed          <-chan struct{}
}

// move writes b as the faults want it, and says whether the connection goes on.
func (d *direction) move(b []byte) bool {
	for len(b) > 0 {
		for len(d.faults) > 0 && d.faults[0].Offset <= d.at {
			if !d.meet(d.faults[0]) {
				return false
			}
			d.faults = d.faults[1:]
		}
		n := int64(len(b))
		if len(d.faults) > 0 {
			n = min(n, d.faults[0].Offset-d.at)
		}
		lost := d.droppingForever
		if d.dropping > 0 {
			n, lost = min(n, d.dropping), true
			d.dropping -= n
		}
		piece := b[:n]
		if d.corrupting > 0 && !lost {
			piece = piece[:min(n, d.corrupting)]
			d.corrupting -= int64(len(piece))
			for i := range piece {
				piece[i] = ^piece[i]
			}
		}
		if !lost {
			if _, err := d.dst.Write(piece); err != nil {
				return false
			}
		}
		b, d.at = b[len(piece):], d.at+int64(len(piece))
	}
	return true
}

func (d *direction) meet(f Fault) bool {
	switch f.Kind {
	case Drop:
		d.dropping, d.droppingForever = f.Bytes, d.droppingForever || f.Bytes == 0
	case Corrupt:
		d.corrupting = max(1, f.Bytes)
	case Delay:
		var after <-chan time.Time
		if f.Until == nil {
			timer := time.NewTimer(f.For)
			defer timer.Stop()
			after = timer.C
		}
		select {
		case <-after:
		case <-f.Until:
		case <-d.closed:
		}
	case Cut:
		return false
	}
	return true
}

// Close ends every connection that went through, and returns when their goroutines have. It is idempotent.
func (f *FaultyMesh) Close() error {
	f.mu.Lock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
	for _, c := range f.open {
		_ = c.Close()
	}
	f.open = nil
	f.mu.Unlock()
	f.pumps.Wait()
	return nil
}
