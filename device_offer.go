package hipfabric

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// offer is what a rank brings to a Device: its device, tried as far as the gate needs, or why there is none.
type offer struct {
	gate  stage.Gate // as asked for
	waits bool       // the device's streams wait on values
	kind  error      // of what keeps the rank from taking part; nil: it does
	text  string     // why it doesn't, or why the device does not wait
	err   error      // what text tells, on the rank itself
}

const (
	offerMagic = "hipfabric device\x01"
	maxWhy     = 400 // bytes of text that travel
	offerSize  = len(offerMagic) + 3 + 2 + maxWhy
)

// offerKinds are those that travel, by number.
var offerKinds = []error{nil, fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrDevice, fabric.ErrTimeout, fabric.ErrAborted}

// offer finds the device and tries it; nil without one.
func (u *GPU) offer(ctx context.Context) (*hipgo.Device, offer) {
	o := offer{gate: u.Gate}
	d, err := u.open()
	if err == nil && u.Gate != stage.Kernels {
		err = d.SelfTest(ctx)
		o.waits = err == nil
		if err != nil && ctx.Err() == nil {
			if failed := fault(err); failed != nil {
				o.kind, o.text, o.err = fabric.ErrDevice, err.Error(), failed
				return d, o
			}
			if u.Gate == stage.Auto {
				o.text, err = err.Error(), nil
			}
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		o.kind, o.text, o.err = deviceKind(err), err.Error(), err
	}
	return d, o
}

// fault is what a self-test met that no gate makes good: a call that failed, or one that did not end in time. It is nil where the
// device is sound and cannot wait, which a runtime also says by refusing an attribute or a wait that it does not know.
func fault(err error) error {
	if failed := (*hipgo.Error)(nil); errors.As(err, &failed) && !failed.Invalid() && !errors.Is(failed, errors.ErrUnsupported) {
		return failed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return nil
}

// deviceKind is which of the module's errors one of hipgo's is.
func deviceKind(err error) error {
	kind := sentinelOf(err)
	if failed := (*hipgo.Error)(nil); errors.Is(kind, fabric.ErrAborted) && errors.As(err, &failed) {
		return fabric.ErrDevice
	}
	if errors.Is(kind, fabric.ErrCapture) {
		return fabric.ErrUnsupported
	}
	return kind
}

func (o *offer) encode() []byte {
	b := make([]byte, 0, offerSize)
	b = append(b, offerMagic...)
	b = append(b, byte(o.gate), 0, byte(len(offerKinds)-1)) // one that is not listed travels as the last
	if o.waits {
		b[len(offerMagic)+1] = 1
	}
	for i, kind := range offerKinds {
		if kind == o.kind { //nolint:errorlint // sentinels, by identity
			b[len(offerMagic)+2] = byte(i)
		}
	}
	text := o.text[:min(len(o.text), maxWhy)]
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)[:offerSize]
}

func (o *offer) decode(b []byte) error {
	b, ok := bytes.CutPrefix(b, []byte(offerMagic))
	if !ok || int(b[2]) >= len(offerKinds) || int(binary.LittleEndian.Uint16(b[3:])) > maxWhy {
		return errNoOffer
	}
	*o = offer{gate: stage.Gate(b[0]), waits: b[1] != 0, kind: offerKinds[b[2]], text: string(b[5:][:binary.LittleEndian.Uint16(b[3:])])}
	return nil
}

var errNoOffer = errors.New("no offer of a device")

// meetDevices gives the offers of all ranks.
func (g *Group) meetDevices(mine *offer) ([]offer, error) {
	blobs := make([]byte, g.cfg.World*offerSize)
	if err := g.host.AllGather(blobs, mine.encode()); err != nil {
		return nil, err
	}
	all := make([]offer, g.cfg.World)
	for r := range all {
		if err := all[r].decode(blobs[r*offerSize:][:offerSize]); err != nil {
			return nil, g.in.Report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: r, From: g.cfg.Rank,
				Text: fmt.Sprintf("rank %d is in a Device, rank %d in an all-gather of %d bytes", g.cfg.Rank, r, offerSize)})
		}
	}
	all[g.cfg.Rank].err = mine.err
	return all, nil
}

// settleGate is the one gate of a group: the one that all ask for; where they leave it open, words if every device can. Its error is
// the same on every rank.
func settleGate(all []offer) (gate stage.Gate, why string, err error) {
	for r := range all {
		if o := &all[r]; o.kind != nil {
			return 0, "", &fabric.Cause{Kind: o.kind, Peer: r, From: r, Text: fmt.Sprintf("rank %d could not open its device: %s", r, o.text), Err: o.err}
		}
	}
	for r := range all {
		if all[r].gate != all[0].gate {
			return 0, "", &fabric.Cause{Kind: fabric.ErrMismatch, Peer: r, From: 0,
				Text: fmt.Sprintf("Gate: rank 0 has %v, rank %d has %v; all ranks of a group use one", all[0].gate, r, all[r].gate)}
		}
	}
	if asked := all[0].gate; asked != stage.Auto {
		return asked, "as asked for", nil
	}
	for r := range all {
		if !all[r].waits {
			return stage.Kernels, fmt.Sprintf("rank %d's device cannot wait on stream values: %s", r, all[r].text), nil
		}
	}
	return stage.Words, "every rank's device waits on stream values", nil
}
