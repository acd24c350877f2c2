package conform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/hipfabric/hipfabric/verbs"
)

// Check is one thing that is promised, of two devices that reach each other.
type Check struct {
	Name string
	Run  func(ctx context.Context, a, b *verbs.Context) error
}

// Bytes is an End's memory.
const Bytes = 64 << 10

// End is one of two queue pairs that are connected.
type End struct {
	C   *verbs.Context
	CQ  *verbs.CQ
	PD  *verbs.PD
	Mem *verbs.Memory
	MR  *verbs.MR
	QP  *verbs.QP
	GID verbs.GIDEntry
	ctx context.Context
}

// NewEnd makes one that is not connected.
func NewEnd(ctx context.Context, c *verbs.Context, f verbs.QPConfig, access verbs.Access) (e *End, err error) {
	e = &End{C: c, ctx: ctx}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.GID, err = mapped(c); err != nil {
		return e, err
	}
	if e.CQ, err = c.NewCQ(verbs.CQConfig{}); err != nil {
		return e, err
	}
	if e.PD, err = c.NewPD(); err != nil {
		return e, err
	}
	if e.Mem, err = verbs.NewMemory(Bytes); err != nil {
		return e, err
	}
	if e.MR, err = e.PD.Register(e.Mem, access); err != nil {
		return e, err
	}
	f.SendCQ = e.CQ
	e.QP, err = e.PD.NewQP(f)
	return e, err
}

func mapped(c *verbs.Context) (verbs.GIDEntry, error) {
	gids, err := c.GIDs()
	for _, g := range gids {
		if g.Type == verbs.GIDRoCEv2 && g.GID.Addr().Is4() {
			return g, nil
		}
	}
	return verbs.GIDEntry{}, errors.Join(err, fmt.Errorf("no IPv4-mapped RoCE v2 GID among %v", gids))
}

// Close gives all of it back.
func (e *End) Close() error {
	var errs []error
	if e.QP != nil {
		errs = append(errs, e.QP.Close())
	}
	if e.MR != nil {
		errs = append(errs, e.MR.Close())
	}
	if e.PD != nil {
		errs = append(errs, e.PD.Close())
	}
	if e.CQ != nil {
		errs = append(errs, e.CQ.Close())
	}
	if e.Mem != nil {
		errs = append(errs, e.Mem.Close())
	}
	return errors.Join(errs...)
}

// Connect joins two ends, with what k has beside addresses.
func Connect(a, b *End, k verbs.Connection) error {
	for _, e := range [][2]*End{{a, b}, {b, a}} {
		k.GIDIndex, k.PSN = e[0].GID.Index, 0x1234
		k.Remote = verbs.Endpoint{QPN: e[1].QP.QPN(), PSN: 0x1234, GID: e[1].GID.GID}
		if err := e[0].QP.Connect(k); err != nil {
			return err
		}
	}
	return nil
}

// All is what an end's memory allows by default.
const All = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// pair makes a check of two connected ends.
func pair(f verbs.QPConfig, k verbs.Connection, run func(a, b *End) error) func(context.Context, *verbs.Context, *verbs.Context) error {
	return func(ctx context.Context, ca, cb *verbs.Context) (err error) {
		a, err := NewEnd(ctx, ca, f, All)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.Close()) }()
		b, err := NewEnd(ctx, cb, f, All)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		if err := Connect(a, b, k); err != nil {
			return err
		}
		return run(a, b)
	}
}

// Poll waits for n completions.
func (e *End) Poll(n int) ([]verbs.WC, error) {
	var all []verbs.WC
	wc := make([]verbs.WC, 16)
	for len(all) < n {
		got, err := e.CQ.Poll(wc[:min(16, n-len(all))])
		if err != nil {
			return all, err
		}
		all = append(all, wc[:got]...)
		if e.ctx.Err() != nil {
			return all, fmt.Errorf("%d of %d completions: %v", len(all), n, all)
		}
		if got == 0 {
			runtime.Gosched()
		}
	}
	return all, nil
}

// ends polls a completion a status, and compares.
func (e *End) ends(want ...verbs.Status) error {
	wc, err := e.Poll(len(want))
	if err != nil {
		return err
	}
	for i := range wc {
		if wc[i].Status != want[i] {
			return fmt.Errorf("completion %d is %v, and should be %v", i, wc[i].Status, want[i])
		}
	}
	return nil
}

// among polls one completion, whose status devices are free to choose.
func (e *End) among(may ...verbs.Status) error {
	wc, err := e.Poll(1)
	if err == nil && !slices.Contains(may, wc[0].Status) {
		err = fmt.Errorf("a completion is %v, and should be one of %v", wc[0].Status, may)
	}
	return err
}

// Write is a signaled write of n bytes to b's memory, from and to an offset.
func (e *End) Write(b *End, from, to int, n uint32) verbs.SendWR {
	return verbs.SendWR{ID: uint64(to), Flags: verbs.SendSignaled, SGE: []verbs.SGE{e.MR.SGE(from, n)}, RemoteAddr: b.MR.Addr() + uint64(to), RKey: b.MR.RKey()}
}

func (e *End) post(chain ...verbs.SendWR) error {
	_, err := e.QP.PostSend(chain...)
	return err
}
