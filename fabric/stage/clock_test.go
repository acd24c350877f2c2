package stage_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clocked has a clock of a rate of its own, and keeps what the kernels were told of it.
type clocked struct {
	*hipgo.Seam
	kHz  int
	mu   sync.Mutex
	told []uint32
}

func (c *clocked) Clock() int { return c.kHz }

func (c *clocked) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	c.mu.Lock()
	c.told = append(c.told, binary.NativeEndian.Uint32(args[stage.ArgClock:]))
	c.mu.Unlock()
	return c.Seam.Launch(stream, function, blocks, threads, args)
}

// A kernel bounds its wait by the device's clock, whose rate only the host knows.
func TestEveryKernelIsToldTheClock(t *testing.T) {
	for kHz, want := range map[int]uint32{27_000: 27_000, 0: 0, -1: 0} {
		w := hiptest.Start(t, hiptest.Settings{})
		c := &clocked{kHz: kHz}
		ranks := openHIP(t, w, 1, stage.Config{Gate: stage.Kernels}, func(_ int, config *stage.Config) {
			c.Seam = config.Driver.(*hipgo.Seam)
			config.Driver = c
		})
		p, err := ranks[0].alloc(64)
		require.NoError(t, err)
		require.NoError(t, ranks[0].AllGather(ranks[0].stream(), p+32, p, 32))
		done(t, ranks)
		assert.Equal(t, []uint32{want, want}, c.told, "stage and collect, at %d kHz", kHz)
		require.NoError(t, w.Close())
	}
}
