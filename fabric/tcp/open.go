package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// Defaults and bounds of Config.
const (
	DefaultEagerBytes = 32 << 10
	MaxEagerBytes     = 16 << 20
	DefaultChunkBytes = 256 << 10
	DefaultWindow     = 256 << 10
	// MinWindow is more than two blocks of one reduction can differ by: a smaller window could keep a contribution back
	// for a result that waits for it.
	MinWindow      = 4 << 10
	DefaultSpinFor = time.Millisecond
)

// Mesh is what Open needs of the bootstrap: authenticated connections between ranks.
type Mesh interface {
	Rank() int
	World() int
	ID() [16]byte // the session
	// Rails are the ways to a peer, at least one, in the same order at both ends.
	Rails(peer int) []fabric.Rail
	// Dial connects to a lower rank, Accept hands over the connection of a higher one.
	Dial(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error)
	Accept(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error)
	// AllGather gives every rank's few bytes on every rank.
	AllGather(ctx context.Context, blob []byte) ([][]byte, error)
}

// Config says how a Transport moves bytes. All ranks of a group need the same Group, Channel, EagerBytes,
// ChunkBytes and Verify.
type Config struct {
	Group   string // name
	Channel string // "host"; channels of a group have connections of their own
	// EagerBytes is the size up to which a call is one frame a peer; 0 is DefaultEagerBytes, at most MaxEagerBytes.
	EagerBytes int
	// ChunkBytes is the payload of a frame of a larger call, a multiple of 8: the grain at which a reduction overlaps
	// reception. 0 is DefaultChunkBytes; tests use a small one to reach calls of many frames with few bytes.
	ChunkBytes int
	// Window bounds how far, in bytes a peer, sending may run ahead of receiving while both have bytes left in a call.
	// 0 is DefaultWindow within a host and no bound elsewhere; at least MinWindow; negative is no bound.
	Window  int
	SpinFor time.Duration // polling after the last progress before a wait parks; 0 is DefaultSpinFor, negative none
	Yield   bool          // more ranks spin on this machine than it has cores
	Verify  bool          // CRC32C of every frame
	Logger  *slog.Logger  // nil is slog.Default()
}

// Validate names the first setting that is out of range.
func (c *Config) Validate() error {
	if c.EagerBytes < 0 || c.EagerBytes > MaxEagerBytes {
		return fabric.Invalidf("EagerBytes is %d, outside 0..%d", c.EagerBytes, MaxEagerBytes)
	}
	if c.Window > 0 && c.Window < MinWindow {
		return fabric.Invalidf("Window is %d; at least %d is needed, 0 for the default, or a negative one for no bound", c.Window, MinWindow)
	}
	if c.ChunkBytes < 0 || c.ChunkBytes%8 != 0 {
		return fabric.Invalidf("ChunkBytes is %d; a multiple of 8 is needed", c.ChunkBytes)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.EagerBytes == 0 {
		c.EagerBytes = DefaultEagerBytes
	}
	if c.ChunkBytes == 0 {
		c.ChunkBytes = DefaultChunkBytes
	}
	if c.SpinFor == 0 {
		c.SpinFor = DefaultSpinFor
	}
	if c.SpinFor < 0 {
		c.SpinFor = 0
	}
	if c.Channel == "" {
		c.Channel = "host"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Open connects to every other rank and returns once all connections of this rank stand; ctx ends it. All ranks call
// it. Errors: ErrInvalid, ErrUnsupported, what Mesh gives. A world of 1 opens no socket.
func Open(ctx context.Context, m Mesh, c Config) (*Transport, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if w := m.World(); w < 1 || w > fabric.MaxWorld {
		return nil, fabric.Invalidf("world %d is outside 1..%d", w, fabric.MaxWorld)
	}
	c = c.withDefaults()
	t := newTransport(m, c)
	if t.world == 1 {
		return t, nil
	}
	sockets, err := connect(ctx, m, c.Channel)
	if err != nil {
		return nil, err
	}
	if t.group, err = link.New(link.Options{SpinFor: c.SpinFor, Yield: c.Yield}); err == nil {
		err = t.adopt(sockets)
	}
	if err != nil {
		closeAll(sockets)
		if t.group != nil {
			t.group.Close()
		}
		return nil, err
	}
	return t, nil
}

// connect makes this rank's connections at once; the first failure ends the others.
func connect(ctx context.Context, m Mesh, channel string) ([]*net.TCPConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sockets := make([]*net.TCPConn, m.World())
	errs := make([]error, m.World())
	var wg sync.WaitGroup
	for p := range m.World() {
		if p == m.Rank() {
			continue
		}
		wg.Go(func() {
			open := m.Accept
			if p < m.Rank() {
				open = m.Dial
			}
			if sockets[p], errs[p] = open(ctx, p, fabric.Lane{Channel: channel}); errs[p] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := firstCause(errs); err != nil {
		closeAll(sockets)
		return nil, err
	}
	return sockets, nil
}

func closeAll(sockets []*net.TCPConn) {
	for _, s := range sockets {
		if s != nil {
			_ = s.Close()
		}
	}
}

// firstCause prefers an error that is not the consequence of another's cancel.
func firstCause(errs []error) error {
	var consequence error
	for p, err := range errs {
		if err == nil {
			continue
		}
		err = fmt.Errorf("data connection to rank %d: %w", p, err)
		if !errors.Is(err, context.Canceled) {
			return err
		}
		consequence = err
	}
	return consequence
}

// adopt moves the sockets out of the runtime's poller into the group; the entries it has taken become nil.
func (t *Transport) adopt(sockets []*net.TCPConn) error {
	for p, s := range sockets {
		if s == nil {
			continue
		}
		remote := s.RemoteAddr().(*net.TCPAddr).IP
		local := remote.IsLoopback() || remote.Equal(s.LocalAddr().(*net.TCPAddr).IP)
		if err := sock.Tune(s, sock.Data); err != nil {
			return err
		}
		fd, err := sock.Take(s)
		sockets[p] = nil
		if err != nil {
			return err
		}
		conn, err := t.group.Add(fd)
		if err != nil {
			return err
		}
		t.flows[p] = flow{peer: p, conn: conn, window: window(t.c.Window, local)}
	}
	return nil
}

func window(setting int, loopback bool) int {
	switch {
	case setting > 0:
		return setting
	case setting == 0 && loopback:
		return DefaultWindow
	default:
		return 0
	}
}

// tags are what binds a frame to this Open of this group and channel.
func tags(id [16]byte, group, channel string) (session uint64, tag uint32) {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s", group, channel)
	return binary.LittleEndian.Uint64(id[:8]), h.Sum32()
}
