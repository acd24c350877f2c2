package roce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// faultyGPU fails one of its calls.
type faultyGPU struct {
	GPU
	method string
	nth    atomic.Int32
}

func (g *faultyGPU) fails(method string) error {
	if method == g.method && g.nth.Add(-1) == 0 {
		return errors.New("planted in " + method)
	}
	return nil
}

func (g *faultyGPU) Load(image []byte, names ...string) (uintptr, []uintptr, error) {
	if err := g.fails("Load"); err != nil {
		return 0, nil, err
	}
	return g.GPU.Load(image, names...)
}

func (g *faultyGPU) AllocHost(n int) ([]byte, uintptr, error) {
	if err := g.fails("AllocHost"); err != nil {
		return nil, 0, err
	}
	return g.GPU.AllocHost(n)
}

func (g *faultyGPU) AllocDevice(n int) (uintptr, error) {
	if err := g.fails("AllocDevice"); err != nil {
		return 0, err
	}
	return g.GPU.AllocDevice(n)
}

func (g *faultyGPU) OpenStream(eventOnly bool) (uintptr, uintptr, bool, error) {
	if err := g.fails("OpenStream"); err != nil {
		return 0, 0, false, err
	}
	return g.GPU.OpenStream(eventOnly)
}

func (g *faultyGPU) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	if err := g.fails("Launch"); err != nil {
		return err
	}
	return g.GPU.Launch(stream, function, blocks, threads, args)
}

func (g *faultyGPU) Record(stream, event uintptr) error {
	if err := g.fails("Record"); err != nil {
		return err
	}
	return g.GPU.Record(stream, event)
}

// skewedGPU has the first kernel read its input a byte too far.
type skewedGPU struct {
	GPU
	launched bool
}

func (g *skewedGPU) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	if !g.launched {
		g.launched = true
		args = append([]byte(nil), args...)
		binary.NativeEndian.PutUint64(args[callIn:], binary.NativeEndian.Uint64(args[callIn:])+1)
	}
	return g.GPU.Launch(stream, function, blocks, threads, args)
}

func TestAProbeThatBringsOtherBytesIsRefusedAlike(t *testing.T) {
	g := &mailGroup{w: hiptest.Start(t, hiptest.Settings{Devices: 3}), f: inMemory(t, verbstest.Switch(3, 1)), world: 3, timeout: 5 * time.Second,
		change: func(r int, c *MailboxConfig) {
			if r == 1 {
				c.GPU = &skewedGPU{GPU: c.GPU}
			}
		}}
	_, errs := g.tryOpen(t)
	for r, err := range errs {
		require.Error(t, err, "rank %d", r)
		assert.ErrorContains(t, err, "vote on mailbox probe: no from rank 0: device failed: rank 0: the mailbox's probe has brought other bytes from rank 1 than it sent", "rank %d", r)
	}
	assert.Zero(t, g.f.Left())
}

// Each step fails on each rank in turn: all ranks end alike, and the path behind it goes on.
func TestEachStepOfAMailboxFailsOnEachRankAlike(t *testing.T) {
	const world = 3
	w := hiptest.Start(t, hiptest.Settings{Devices: world})
	type fault struct {
		where string
		nth   int
		verb  bool
	}
	faults := []fault{{"Load", 1, false}, {"AllocHost", 1, false}, {"AllocDevice", 1, false}, {"OpenStream", 1, false}, {"AllocHost", 2, false},
		{"OpenStream", 2, false}, {"Launch", 1, false}, {"Record", 1, false}}
	for _, verb := range []string{"ibv_open_device", "ibv_alloc_pd", "ibv_create_cq", "ibv_reg_mr", "ibv_create_qp", "ibv_modify_qp", "ibv_post_recv", "ibv_post_send"} {
		faults = append(faults, fault{verb, 1, true})
	}
	faults = append(faults, fault{"ibv_reg_mr", 2, true}, fault{"ibv_reg_mr", 3, true})
	for i, fl := range faults {
		for bad := range world {
			if underRace && bad != i%world {
				continue
			}
			f := inMemory(t, verbstest.Switch(world, 1))
			g := &mailGroup{w: w, f: f, world: world, timeout: 2 * time.Second, change: func(r int, c *MailboxConfig) {
				if r == bad && !fl.verb {
					gpu := &faultyGPU{GPU: c.GPU, method: fl.where}
					gpu.nth.Store(int32(fl.nth))
					c.GPU = gpu
				}
			}}
			if fl.verb {
				f.Host(bad).Refuse(fl.where, fl.nth, syscall.EIO)
			}
			_, errs := g.tryOpen(t)
			for r, err := range errs {
				require.Error(t, err, "%s on rank %d: rank %d opened", fl.where, bad, r)
				assert.EqualError(t, err, errs[0].Error(), "%s on rank %d: rank %d", fl.where, bad, r)
				if fl.where != "ibv_post_send" { // of which its rank need not know yet when the others do
					assert.ErrorContains(t, err, fl.where, "on rank %d: rank %d", bad, r)
					assert.ErrorContains(t, err, fmt.Sprintf("no from rank %d: ", bad), "rank %d", r)
				}
			}
			t.Logf("%s %d on rank %d: %s", fl.where, fl.nth, bad, strings.SplitN(errs[0].Error(), "\n", 2)[0])
			assert.Zero(t, f.Left(), "%s on rank %d", fl.where, bad)
		}
	}
}
