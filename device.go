package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/stage"
)

// deviceColor, in splitKey, is none that a rank can give; see meetingColor.
const deviceColor = -3

// deviceSuffix ends the name of a group's calls on device memory.
const deviceSuffix = "/device"

// channel is a group's second one: its calls on device memory, with a sequence and connections of their own.
type channel struct {
	sub   *bootstrap.Sub
	calls *fabric.StreamCollective
	gate  stage.Gate
	why   string // this gate
	about string // the device, its library
	proxy *proxyLease
	small Path // the mailbox; none where the wire has none

	once   sync.Once
	closed error
}

// close ends the calls first, then what they share.
func (c *channel) close() error {
	c.once.Do(func() {
		err := c.calls.Close()
		c.sub.Close()
		c.closed = errors.Join(err, c.proxy.release())
	})
	return c.closed
}

// Device gives this group its calls on device memory: a StreamCollective queues each on a stream of the engine's. Every rank
// calls it, with a GPU of its own, in the order of its Host calls, among which it is an all-gather.
//
// It is the group's second channel: it has a sequence, connections and a call in flight of its own beside Host's, and the same cause:
// what fails here ends the group, and the group's failure ends it. In errors, logs, the status and the flight records it is called
// NAME/device. It is closed with the group, or before by its own Close; meet at a Barrier first, as before the group's.
//
// A group has one GPU a rank and one gate: GPU.Gate, the same on every rank. The automatic one is words where every rank's device can
// wait on stream values, as its SelfTest finds, else kernels; Paths says which it is, and why. Groups of one Open, the opened one and those
// split from it, that use one device share a proxy, a thread that is there until the last of them has closed; groups of two Opens do not.
//
// Where roce joins the ranks, an all-gather, an exchange and an all-reduce of f16, bf16 or f32, of up to Config.MailboxBytes a rank, is one kernel
// launch, the mailbox; all else goes through the proxy, in order with them. If a rank cannot have one, all calls of all ranks go through the proxy: the log and
// Paths say so, and why.
//
// Kernels and other calls may be queued behind a call; a copy of more than 16 KiB between host and device memory may not, before Wait has
// said that the call is over: such copies go through rings that all streams share, and one that waits for the call holds up the copies that the
// call itself is made of, until Timeout ends the group with ErrDevice.
//
// Device blocks until all ranks have theirs. All ranks get the same outcome: one that failed leaves the group as it was, unless
// the group itself has failed. The ranks' meeting is bounded by Timeout as any call; then ctx, on any rank, or OpenTimeout ends the wait
// for connections. No stream of the device may be capturing meanwhile. Errors are *fabric.OpError with Op "device": ErrInvalid for a second GPU of
// a group, a GPU that names no device or two, a call of this group in flight; ErrUnsupported where the device, the library or this build cannot, naming
// it; ErrMismatch for different gates; ErrDevice when a device call failed or does not return; ErrTimeout, ErrAborted, ErrClosed; this group's cause when
// it has failed.
func (g *Group) Device(ctx context.Context, gpu GPU) (*fabric.StreamCollective, error) {
	if !g.splitting.TryLock() {
		return nil, deviceError(&g.cfg, fabric.Invalidf("a Split or Device of group %q is in progress; one at a time", g.cfg.Name))
	}
	defer g.splitting.Unlock()
	name := g.cfg.Name + deviceSuffix
	switch { // what all ranks refuse alike; all else is told to the others
	case g.device != nil:
		return nil, deviceError(&g.cfg, fabric.Invalidf("group %q has its GPU, %s; Split it for another", g.cfg.Name, g.device.about))
	case len(name) > maxName:
		return nil, deviceError(&g.cfg, fabric.Invalidf("the group's name %q makes its device's %q: %d bytes; at most %d are allowed, take a shorter one",
			g.cfg.Name, name, len(name), maxName))
	}
	// Before the ranks meet, so that none can miss what another says of its part.
	sub, err := g.session.Sub(bootstrap.SubConfig{Name: name, Key: splitKey(g.sub, g.devices, deviceColor), Members: g.members(), Parent: g.sub, Isolated: true})
	if err != nil {
		return nil, deviceError(&g.cfg, err)
	}
	c, err := g.takeDevice(ctx, sub, &gpu)
	if err != nil {
		sub.Close()
		g.tellPath(Path{Name: pathStaged, Reason: err.Error()})
		return nil, deviceError(&g.cfg, err)
	}
	g.enterChannel(c)
	return c.calls, nil
}

// takeDevice settles with all ranks what to open, and opens it; its error is the same on all of them.
func (g *Group) takeDevice(ctx context.Context, sub *bootstrap.Sub, gpu *GPU) (*channel, error) {
	device, mine := gpu.offer(ctx)
	all, err := g.meetDevices(&mine)
	if err != nil {
		return nil, err
	}
	g.devices++
	gate, why, err := settleGate(all)
	if err != nil {
		return nil, err
	}
	c := &channel{sub: sub, gate: gate, why: why, about: device.String()}
	if err := g.openChannel(ctx, c, device, gpu.Image); err != nil {
		return nil, sub.Report(deviceCause(g.cfg.Rank, err)) // ends the others' wait for this rank
	}
	return c, nil
}

// enterChannel makes c the group's, once all ranks have theirs; what has ended the group since has ended it.
func (g *Group) enterChannel(c *channel) {
	c.sub.Move(g.sub, false)
	g.mu.Lock()
	g.device = c
	g.mu.Unlock()
	if c.small.Name != "" {
		g.tellPath(c.small)
	}
	g.tellPath(Path{Name: pathStaged, Chosen: true, Reason: fmt.Sprintf("%v gate on %s: %s", c.gate, c.about, c.why), Gate: c.gate.String(), Device: c.about})
	g.log.Info("device open", keyPath, pathStaged, keyGate, c.gate.String(), keyDevice, c.about)
}

// onDevice is the group's channel of calls on device memory, nil when there is none.
func (g *Group) onDevice() *channel {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.device
}

// tellPath has Paths say what became of a path.
func (g *Group) tellPath(p Path) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paths = append(slices.DeleteFunc(slices.Clone(g.paths), func(old Path) bool { return old.Name == p.Name }), p)
}

// hostPaths are those that groups split from g have.
func (g *Group) hostPaths() []Path {
	return slices.DeleteFunc(g.Paths(), func(p Path) bool { return p.Name == pathStaged || p.Name == pathMailbox })
}

// closeDevice ends g's calls on device memory.
func (g *Group) closeDevice() error {
	c := g.onDevice()
	if c == nil {
		return nil
	}
	return c.close()
}

// deviceCause is what this rank tells the others when it could not open its part; a cause stays as it is.
func deviceCause(rank int, err error) *fabric.Cause {
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		return cause
	}
	return &fabric.Cause{Kind: deviceKind(err), Peer: rank, From: rank, Text: fmt.Sprintf("rank %d could not open its device: %v", rank, err), Err: err}
}

func deviceError(c *Config, err error) error { return opError("device", c, err) }
