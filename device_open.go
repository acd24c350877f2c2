package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// openChannel brings up this rank's part and returns once all ranks have theirs: prepare, vote, then enter. What it gives up it frees;
// sub stays the caller's.
func (g *Group) openChannel(ctx context.Context, c *channel, device *hipgo.Device, image []byte) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.OpenTimeout)
	defer cancel()
	if err := g.connectChannel(ctx, c, device, image); err != nil {
		return err
	}
	if err := c.sub.Agree(ctx); err != nil {
		return errors.Join(err, c.close())
	}
	return nil
}

// BuiltinKernels is the image of the kernels gate that Device takes for d where GPU.Image is nil: code objects for the AMD targets
// that docs/kernels.md lists, or PTX for hipgo.OpenCUDA's devices. Read only.
func BuiltinKernels(d *hipgo.Device) []byte {
	if d.Runtime().Platform() == "CUDA" {
		return append(slices.Clip(mailbox.PTX), 0) // the driver reads it as a string of C
	}
	return mailbox.Image
}

// driverWithin is what the calls of a driver have to return once nobody waits for the device any more.
const driverWithin = 3 * time.Second

// connectChannel makes the connections and what moves device memory over them. It leaves a driver that does not return to itself: what
// that gives later is given back.
func (g *Group) connectChannel(ctx context.Context, c *channel, device *hipgo.Device, image []byte) error {
	cfg := g.cfg
	cfg.Name += deviceSuffix
	policy := g.family.spin(cfg.SpinFor, g.session.LocalRanks()) // the channel is one more wait: the proxy's, beside the engine's own
	host, err := openWire(ctx, g.wire, &cfg, c.sub, show(c.sub), c.sub.Key(), policy)
	if err != nil {
		return err
	}
	if image == nil {
		image = BuiltinKernels(device)
	}
	made := make(chan mover, 1)
	go func() {
		m := g.family.move(device, stage.Config{Transport: host, Driver: device.Seam(), Image: image, Gate: c.gate, PartBytes: cfg.PartBytes,
			Group: cfg.Name, Timeout: cfg.Timeout, Arbiter: c.sub, Yield: policy.yield, Logger: cfg.Logger})
		if g.wire == pathRoCE && m.err == nil {
			m.putMailbox(ctx, &cfg, c.sub, device, image, policy)
		}
		made <- m
	}()
	m, held := within(ctx, c.sub.Done(), made)
	switch {
	case held:
		go func() {
			late := <-made
			_ = late.close()
		}()
		return fmt.Errorf("%w: a call of the driver does not return, on %v", fabric.ErrDevice, device)
	case m.err != nil:
		return m.err
	}
	c.proxy, c.small = m.proxy, m.small
	c.calls = fabric.NewStream(m.path, fabric.Options{Group: cfg.Name, Timeout: cfg.Timeout, Arbiter: c.sub})
	c.sub.OnCause(m.path.Abort)
	return nil
}

// mover is what moves device memory, once its driver has returned.
type mover struct {
	path  fabric.StreamTransport
	proxy *proxyLease
	small Path
	err   error
}

// move opens what s says with the family's proxy of the device; the transport of s is closed with it.
func (f *family) move(device *hipgo.Device, s stage.Config) mover {
	proxy, err := f.lease(device)
	if err != nil {
		return mover{err: errors.Join(err, s.Transport.Close())}
	}
	s.Proxy = proxy.Proxy
	path, err := stage.Open(s)
	if err != nil {
		return mover{err: errors.Join(err, proxy.release())}
	}
	return mover{path: path, proxy: proxy}
}

func (m *mover) close() error {
	if m.err != nil {
		return m.err
	}
	return errors.Join(m.path.Close(), m.proxy.release())
}

// within waits for what is made, and a little longer than for ctx or the end of the group; held: in vain.
func within(ctx context.Context, over <-chan struct{}, made <-chan mover) (m mover, held bool) {
	select {
	case m = <-made:
		return m, false
	case <-ctx.Done():
	case <-over:
	}
	late := time.NewTimer(driverWithin)
	defer late.Stop()
	select {
	case m = <-made:
		return m, false
	case <-late.C:
		return mover{}, true
	}
}
