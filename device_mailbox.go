package hipfabric

import (
	"context"
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/hipgo"
)

// putMailbox puts a mailbox before m's path, where every rank can have one: all ranks try, and all get the same outcome. What ends the
// group, and a device that failed, is m's error; what else keeps a rank from it leaves the path as it is.
func (m *mover) putMailbox(ctx context.Context, cfg *Config, sub *bootstrap.Sub, device *hipgo.Device, image []byte, policy spinPolicy) {
	m.small = Path{Name: pathMailbox}
	if cfg.World == 1 {
		m.small = Path{}
		return
	}
	if reason := withoutMailbox(cfg); reason != "" {
		m.small.Reason = reason
		return
	}
	mailbox, err := roce.OpenMailbox(ctx, ballot{sub, deviceVote(show(sub))}, rdma(cfg.RDMA), roce.MailboxConfig{RoCE: roceConfig(cfg, sub, sub.Key()+"/mailbox", policy),
		GPU: device.Seam(), Image: image, Rest: m.path, SlotBytes: cfg.MailboxBytes, Arbiter: sub})
	switch {
	case err == nil:
		m.path = mailbox
		m.small.Chosen = true
		m.small.Reason = fmt.Sprintf("every rank has it, for calls of at most %d bytes", cfg.MailboxBytes)
	case ctx.Err() != nil || sub.Cause() != nil || errors.Is(err, fabric.ErrDevice):
		*m = mover{err: errors.Join(err, m.close())}
	default:
		cfg.Logger.Warn("there is no mailbox, and the proxy moves small calls too", keyGroup, cfg.Name, keyRank, cfg.Rank, keyErr, err)
		m.small.Reason = err.Error()
	}
}

// withoutMailbox is why the settings, which are the same on all ranks, leave no mailbox.
func withoutMailbox(cfg *Config) string {
	switch {
	case cfg.MailboxBytes == NoMailbox:
		return "MailboxBytes is NoMailbox"
	case cfg.Verify:
		return "Verify: a mailbox has no checksums"
	}
	return ""
}

// deviceVote is v for those whose no may be the device's, which is then ErrDevice.
func deviceVote(v vote) vote {
	return func(ctx context.Context, step string, no error) error {
		if no != nil && !errors.Is(no, fabric.ErrDevice) && errors.Is(deviceKind(no), fabric.ErrDevice) {
			no = fmt.Errorf("%w: %w", fabric.ErrDevice, no)
		}
		return v(ctx, step, no)
	}
}
