package tcp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// Defaults and bounds of Config.
const (
	DefaultEagerBytes = 32 << 10  // bytes
	MaxEagerBytes     = 16 << 20  // bytes, of a chunk too
	DefaultChunkBytes = 256 << 10 // bytes
	DefaultWindow     = 256 << 10 // bytes, within a host
	// MinWindow is more than two blocks of one reduction can differ by: a smaller window could keep a contribution back
	// for a result that waits for it.
	MinWindow      = 4 << 10
	DefaultLanes   = 4  // connections a pair, beyond a host
	MaxLanes       = 64 // connections a pair
	LanesAuto      = -1 // as Lanes: measure at Open
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
	Window int
	// SocketBuffer is the size in bytes of each socket buffer; 0 leaves it to the system, which grows it as needed.
	SocketBuffer int
	// Lanes is how many connections a pair has, at most MaxLanes; the ends use the smaller of their numbers, and at least
	// one a rail. 0 is one within a host and DefaultLanes elsewhere. LanesAuto, on every rank or on none, measures 1, 2, 4 and 8 before Open
	// returns. The process's file descriptors bound it too.
	Lanes     int
	LaneCache LaneCache     // of LanesAuto's results; nil measures every time
	SpinFor   time.Duration // polling after the last progress before a wait parks; 0 is DefaultSpinFor, negative none
	Yield     bool          // more ranks spin on this machine than it has cores
	Verify    bool          // CRC32C of every frame
	Logger    *slog.Logger  // nil is slog.Default()
}

// Validate names the first setting that is out of range.
func (c *Config) Validate() error {
	if c.EagerBytes < 0 || c.EagerBytes > MaxEagerBytes {
		return fabric.Invalidf("EagerBytes is %d, outside 0..%d; 0 is %d", c.EagerBytes, MaxEagerBytes, DefaultEagerBytes)
	}
	if c.Window > 0 && c.Window < MinWindow {
		return fabric.Invalidf("Window is %d; at least %d is needed, 0 for the default, or a negative one for no bound", c.Window, MinWindow)
	}
	if c.Lanes < LanesAuto || c.Lanes > MaxLanes {
		return fabric.Invalidf("Lanes is %d; 1 to %d, 0 for the default, or %d to measure", c.Lanes, MaxLanes, LanesAuto)
	}
	if c.ChunkBytes < 0 || c.ChunkBytes > MaxEagerBytes || c.ChunkBytes%8 != 0 {
		return fabric.Invalidf("ChunkBytes is %d; a multiple of 8, at most %d, is needed, or 0 for %d", c.ChunkBytes, MaxEagerBytes, DefaultChunkBytes)
	}
	if c.SocketBuffer < 0 {
		return fabric.Invalidf("SocketBuffer is %d; bytes are needed, or 0 for the system's own", c.SocketBuffer)
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
	var err error
	if t.group, err = link.New(link.Options{SpinFor: c.SpinFor, Yield: c.Yield}); err != nil {
		return nil, err
	}
	if err := t.bringUp(ctx, m); err != nil {
		t.group.Close()
		return nil, err
	}
	if t.mend != nil {
		t.mend.wg.Go(t.watch)
	}
	return t, nil
}

// bringUp opens the lanes, after it has measured how many there should be where that was asked for.
func (t *Transport) bringUp(ctx context.Context, m Mesh) error {
	if t.c.Lanes != LanesAuto {
		return t.connect(ctx, m, t.c.Lanes, 0)
	}
	lanes, err := t.sweep(ctx, m)
	if err != nil {
		return err
	}
	return t.connect(ctx, m, lanes, 1)
}

// binding is what binds a frame to this Open of this group and channel.
func binding(id [16]byte, group, channel string) uint64 {
	h := sha256.New()
	h.Write(id[:])
	fmt.Fprintf(h, "%s\x00%s", group, channel)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}
