package fabric_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
)

func TestACallDoesNotAllocate(t *testing.T) {
	c := fabric.New(newFake(1, 3), fabric.Options{Arbiter: &arbiter{}})
	b := make([]byte, 256)
	lengths, blocks := []int{4, 4, 4}, []int{2, 2, 2}
	for name, call := range map[string]func() error{
		"all-reduce":      func() error { return c.AllReduce(b[:8], b[32:40], fabric.F32, fabric.Sum) },
		"reduce-scatter":  func() error { return c.ReduceScatter(b[:4], b[32:44], fabric.F32, fabric.Sum) },
		"all-gather":      func() error { return c.AllGather(b[:12], b[32:36]) },
		"all-gather-v":    func() error { return c.AllGatherV(b[:12], b[32:36], 4, lengths) },
		"all-gather-rows": func() error { return c.AllGatherRows(b[:12], b[32:36], 2) },
		"broadcast":       func() error { return c.Broadcast(b[:4], 0) },
		"all-to-all":      func() error { return c.AllToAll(b[:6], b[32:38]) },
		"all-to-all-v":    func() error { return c.AllToAllV(b[:6], b[32:38], blocks, blocks) },
		"exchange":        func() error { return c.Exchange(b[:4], b[32:36], 0) },
		"send-recv":       func() error { return c.SendRecv(b[:4], 0, b[32:36], 2) },
		"send":            func() error { return c.Send(b[:4], 0) },
		"recv":            func() error { return c.Recv(b[:4], 0) },
		"barrier":         c.Barrier,
		"begin and wait": func() error {
			s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
			if err != nil {
				return err
			}
			return s.Wait()
		},
		"begin and poll": func() error {
			s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
			if err != nil {
				return err
			}
			_, err = s.Poll()
			return err
		},
	} {
		var err error
		assert.Zero(t, testing.AllocsPerRun(100, func() { err = call() }), name)
		assert.NoError(t, err, name)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Progress() }), "progress")
}
