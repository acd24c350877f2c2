package stage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// faulty is a Launcher of which one call of one method fails, without effect.
type faulty struct {
	*hipgo.Seam
	method string
	nth    int32
	err    error
	calls  atomic.Int32
}

func (f *faulty) enter(method string) error {
	if method == f.method && f.calls.Add(1) == f.nth {
		return f.err
	}
	return nil
}

func (f *faulty) Load(image []byte, names ...string) (uintptr, []uintptr, error) {
	if err := f.enter("Load"); err != nil {
		return 0, nil, err
	}
	return f.Seam.Load(image, names...)
}

func (f *faulty) Unload(module uintptr) error {
	return errors.Join(f.enter("Unload"), f.Seam.Unload(module))
}

func (f *faulty) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	if err := f.enter("Launch"); err != nil {
		return err
	}
	return f.Seam.Launch(stream, function, blocks, threads, args)
}

func (f *faulty) AllocDevice(bytes int) (uintptr, error) {
	if err := f.enter("AllocDevice"); err != nil {
		return 0, err
	}
	return f.Seam.AllocDevice(bytes)
}

func (f *faulty) FreeDevice(p uintptr) error {
	return errors.Join(f.enter("FreeDevice"), f.Seam.FreeDevice(p))
}

var errLauncher = errors.New("hipErrorUnknown")

// A launch that fails, whichever and on any rank, ends all ranks alike and leaves no stream parked.
func TestALaunchThatFailsEndsAllRanksAlike(t *testing.T) {
	for rank := range 2 {
		for nth := int32(1); nth <= 9; nth++ { // a call here has five
			t.Run(fmt.Sprintf("launch %d on rank %d", nth, rank), func(t *testing.T) {
				w := hiptest.Start(t, hiptest.Settings{Devices: 2})
				ranks := openHIP(t, w, 2, stage.Config{Gate: stage.Kernels, PartBytes: 64}, func(r int, c *stage.Config) {
					if r == rank {
						c.Driver = &faulty{Seam: c.Driver.(*hipgo.Seam), method: "Launch", nth: nth, err: errLauncher}
					}
				})
				defer done(t, ranks)
				errs := exercise(t, ranks, 3, 200)
				require.True(t, alike(t, ranks, errs))
				for i, err := range errs {
					require.ErrorIs(t, err, fabric.ErrDevice, "rank %d", i)
					require.ErrorContains(t, err, fmt.Sprintf("rank %d: queueing all-gather on stream %#x", rank, ranks[rank].s.Raw()))
					require.ErrorContains(t, err, errLauncher.Error())
					var op *fabric.OpError
					require.ErrorAs(t, err, &op)
					assert.Equal(t, rank, op.Peer)
					assert.Equal(t, fabric.ScopeDevice, op.Scope())
				}
			})
		}
	}
}

// What opening needs and does not get is an error of that rank, which keeps nothing, and ends the others' calls; only an image
// that will not do is unsupported.
func TestALauncherThatFailsAtOpenEndsTheOthers(t *testing.T) {
	unfit := &hipgo.UnsupportedError{Device: "gfx0000", Feature: "no kernels"}
	for _, c := range []struct {
		method string
		err    error
		kind   error
		text   string
	}{
		{"Load", errLauncher, fabric.ErrDevice, "loading the kernels on gfx1151"},
		{"Load", unfit, fabric.ErrUnsupported, fmt.Sprintf("the image of %d bytes has no kernels for gfx1151", len(mailbox.Image))},
		{"Load", invalid("no image"), fabric.ErrUnsupported, "has no kernels for gfx1151"},
		{"AllocDevice", errLauncher, fabric.ErrDevice, "device memory for the kernels on gfx1151"},
	} {
		for rank := range 2 {
			t.Run(fmt.Sprintf("%s %v on rank %d", c.method, c.err, rank), func(t *testing.T) {
				w := hiptest.Start(t, hiptest.Settings{Devices: 2})
				net := fabrictest.NewNetwork(2)
				open := func(r int, d stage.Driver) (*stage.Transport, error) {
					return stage.Open(stage.Config{Transport: net.Transport(r), Driver: d, Gate: stage.Kernels, Image: mailbox.Image, Timeout: 20 * time.Second})
				}
				h := newHIP(t, w, 1-rank)
				path, err := open(1-rank, h.d.Seam())
				require.NoError(t, err)
				other := &hipRank{fabric.NewStream(path, fabric.Options{}), h, path}
				p, err := other.alloc(96)
				require.NoError(t, err)
				require.NoError(t, other.AllGather(other.stream(), p+32, p, 32))
				_, err = open(rank, &faulty{Seam: w.Device(rank).Seam(), method: c.method, nth: 1, err: c.err})
				require.ErrorIs(t, err, c.kind)
				require.ErrorContains(t, err, c.text)
				require.ErrorContains(t, err, c.err.Error())
				for _, not := range []error{fabric.ErrDevice, fabric.ErrUnsupported} {
					assert.Equal(t, not == c.kind, errors.Is(err, not), "%v", not) //nolint:errorlint // sentinels, by identity
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				require.ErrorIs(t, other.Wait(ctx, other.stream()), fabric.ErrPeerFailed)
				require.NoError(t, other.s.Synchronize(ctx), "its stream is parked")
				done(t, []*hipRank{other})
			})
		}
	}
}

// What cannot be given back is said, and the rest is given back; the other ranks do not notice.
func TestALauncherThatFailsAtCloseSaysSo(t *testing.T) {
	for _, method := range []string{"Unload", "FreeDevice"} {
		for rank := range 2 {
			t.Run(fmt.Sprintf("%s on rank %d", method, rank), func(t *testing.T) {
				w := hiptest.Start(t, hiptest.Settings{Devices: 2})
				ranks := openHIP(t, w, 2, stage.Config{Gate: stage.Kernels, PartBytes: 64}, func(r int, c *stage.Config) {
					if r == rank {
						c.Driver = &faulty{Seam: c.Driver.(*hipgo.Seam), method: method, nth: 1, err: errLauncher}
					}
				})
				require.False(t, slices.ContainsFunc(exercise(t, ranks, 3, 200), func(err error) bool { return err != nil }))
				err := ranks[rank].Close()
				require.ErrorIs(t, err, errLauncher)
				require.NoError(t, ranks[1-rank].Close())
				done(t, ranks[1-rank:2-rank])
				r := ranks[rank]
				r.memory.Range(func(p, _ any) bool { return assert.NoError(t, r.free(p.(fabric.DevPtr))) })
				require.NoError(t, r.close())
				assert.Empty(t, w.Leaks())
			})
		}
	}
}
