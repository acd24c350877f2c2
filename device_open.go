package hipfabric

import (
	"context"
	"errors"
	"slices"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/fabric/tcp"
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

// connectChannel makes the connections and what moves device memory over them.
func (g *Group) connectChannel(ctx context.Context, c *channel, device *hipgo.Device, image []byte) error {
	cfg := g.cfg
	cfg.Name += deviceSuffix
	settings := tcpConfig(&cfg, g.family.spin(cfg.SpinFor, g.session.LocalRanks()))
	settings.Channel = c.sub.Key()
	host, err := tcp.Open(ctx, c.sub, settings)
	if err != nil {
		return err
	}
	if c.proxy, err = g.family.lease(device); err != nil {
		return errors.Join(err, host.Close())
	}
	if image == nil {
		image = BuiltinKernels(device)
	}
	staged, err := stage.Open(stage.Config{Transport: host, Driver: device.Seam(), Image: image, Gate: c.gate, PartBytes: cfg.PartBytes, Group: cfg.Name,
		Timeout: cfg.Timeout, Arbiter: c.sub, Proxy: c.proxy.Proxy})
	if err != nil {
		return errors.Join(err, c.proxy.release())
	}
	c.calls = fabric.NewStream(staged, fabric.Options{Group: cfg.Name, Timeout: cfg.Timeout, Arbiter: c.sub})
	c.sub.OnCause(staged.Abort)
	return nil
}
