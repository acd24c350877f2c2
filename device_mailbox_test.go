//go:build linux && cgo

package hipfabric

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// overRoCE has a group's ranks meet over HCAs in memory.
func overRoCE(t *testing.T, world int, change func(*Config)) func(*Config) {
	t.Helper()
	hcas, err := verbstest.New(1, verbstest.Switch(world, 2))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.Zero(t, hcas.Left())
		hcas.Close()
	})
	return func(c *Config) {
		c.Paths, c.RDMA = []string{"roce"}, hcas.Host(c.Rank).Library()
		if change != nil {
			change(c)
		}
	}
}

func mailboxPath(g *Group) Path {
	for _, p := range g.Paths() {
		if p.Name == "mailbox" {
			return p
		}
	}
	return Path{}
}

// launched counts the kernels of that name among a software device's operations.
func launched(w *hiptest.World, name string) (n int) {
	for _, o := range w.Trace() {
		if o.Name == name {
			n++
		}
	}
	return n
}

func TestSmallCallsOnDeviceMemoryAreOneKernelOverRoCE(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			const world = 3
			w := hiptest.Start(t, hiptest.Settings{Devices: world})
			list := make([]GPU, world)
			for r := range list {
				list[r] = GPU{Device: w.Device(r), Gate: gate}
			}
			ranks := staged(t, opened(t, world, overRoCE(t, world, func(c *Config) { c.MailboxBytes = 4096 })), list)
			for _, r := range ranks {
				assert.Equal(t, Path{Name: "mailbox", Chosen: true, Reason: "every rank has it, for calls of at most 4096 bytes"}, mailboxPath(r.Group))
			}
			for i, c := range []struct{ bytes, kernels int }{{1, 1}, {4096, 1}, {4097, 0}, {5000, 0}, {77, 1}} {
				before := launched(w, "hf_gather")
				require.NoError(t, errors.Join(each(world, func(r int) error { return ranks[r].gather(t.Context(), c.bytes, byte(i)) })...))
				assert.Equal(t, c.kernels*world, launched(w, "hf_gather")-before, "%d bytes", c.bytes)
			}
			parts := make([]*Group, world)
			require.NoError(t, errors.Join(each(world, func(r int) (err error) {
				parts[r], err = ranks[r].Split(t.Context(), "part", r/2, r, SplitOptions{})
				return err
			})...))
			assert.Empty(t, mailboxPath(parts[0]), "a part has no GPU yet")
			halves := staged(t, parts, list)
			before := launched(w, "hf_gather")
			require.NoError(t, errors.Join(each(world, func(r int) error { return halves[r].gather(t.Context(), 100, 7) })...))
			assert.Equal(t, 2, launched(w, "hf_gather")-before, "the part of one rank needs none")
			require.NoError(t, errors.Join(closeRanks(halves)...))
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}

// One rank's image has no mailbox: no rank has one, each says so, and calls go by the proxy.
func TestOneRankWithoutAMailboxKeepsAllFromIt(t *testing.T) {
	all := devices(t, 3, hiptest.Settings{Arch: "gfx900"})
	list := gpus(all, stage.Kernels)
	for r := range list {
		list[r].Image = codeObject(t, machGfx900, "hf_stage", "hf_collect", "hf_gather", "hf_all_reduce", "hf_exchange")
	}
	list[1].Image = codeObject(t, machGfx900, "hf_stage", "hf_collect")
	var log logs
	ranks := staged(t, opened(t, 3, overRoCE(t, 3, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })), list)
	for _, r := range ranks {
		p := mailboxPath(r.Group)
		assert.False(t, p.Chosen)
		for _, text := range []string{"no from rank 1", "has no mailbox for", `kernel "hf_gather"`} {
			assert.Contains(t, p.Reason, text)
		}
	}
	assert.Len(t, log.records(t, "there is no mailbox, and the proxy moves small calls too"), 3)
	require.NoError(t, errors.Join(each(3, func(r int) error { return ranks[r].gather(t.Context(), 100, 1) })...))
	require.NoError(t, errors.Join(closeRanks(ranks)...))
}

func TestAMailboxThatIsNotWantedIsNot(t *testing.T) {
	for reason, change := range map[string]func(*Config){
		"MailboxBytes is NoMailbox":          func(c *Config) { c.MailboxBytes = NoMailbox },
		"Verify: a mailbox has no checksums": func(c *Config) { c.Verify = true },
	} {
		t.Run(reason, func(t *testing.T) {
			ranks := staged(t, opened(t, 2, overRoCE(t, 2, change)), gpus(devices(t, 2, hiptest.Settings{}), stage.Words))
			for _, r := range ranks {
				assert.Equal(t, Path{Name: "mailbox", Reason: reason}, mailboxPath(r.Group))
			}
			require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), 100, 1) })...))
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}

func TestAFailureInTheMailboxEndsTheGroupWithOneCause(t *testing.T) {
	c := newCouple(t, overRoCE(t, 2, nil))
	waiting := make(chan error, 1)
	go func() { waiting <- c.ranks[0].Host().Recv(make([]byte, 8), 1) }()
	require.NoError(t, errors.Join(each(2, func(r int) error { return errors.Join(c.queue(r, 16), c.wait(t, r)) })...))
	require.NoError(t, errors.Join(each(2, func(r int) error { return c.queue(r, 16*(1+r)) })...))
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrDesync)
		cause := ended(t, c.ranks[r].Group)
		assert.Equal(t, "default/device", cause.Group)
		assert.ErrorIs(t, cause.Kind, fabric.ErrDesync)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, []any{"all-gather", "mailbox", "default/device", r}, []any{op.Op, op.Path, op.Group, op.Rank})
	}
	require.ErrorIs(t, <-waiting, fabric.ErrDesync)
	c.end(t)
}

func TestAnAbortEndsTheKernelsOfTheMailbox(t *testing.T) {
	c := newCouple(t, overRoCE(t, 2, nil))
	for range 3 {
		require.NoError(t, c.queue(0, 16)) // rank 1 never comes
	}
	c.ranks[1].Abort(errors.New("no more tokens"))
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrAborted)
		assert.ErrorContains(t, err, "no more tokens")
		require.ErrorIs(t, c.ranks[r].Host().Barrier(), fabric.ErrAborted)
	}
	c.end(t)
}

// What the mailbox asks of HIP when it opens fails in turn, on one rank: that is the device's failure on all of them, nothing is left,
// and the group goes on without its device.
func TestAFailureWhileTheMailboxOpensIsTheSameOnAllRanks(t *testing.T) {
	for call, which := range map[string][]int{ // counted with those of the gate, which two ranks open before
		"hipModuleLoadData": {3, 4}, "hipModuleGetFunction": {5, 10}, "hipModuleLaunchKernel": {1, 2},
	} {
		for _, nth := range which {
			t.Run(fmt.Sprint(call, " ", nth), func(t *testing.T) {
				world := hiptest.Start(t, hiptest.Settings{Devices: 2})
				groups := opened(t, 2, overRoCE(t, 2, nil))
				require.NoError(t, world.Fail(hiptest.Fault{Call: call, Nth: nth, Code: 719}))
				errs := each(2, func(r int) error {
					_, err := groups[r].Device(t.Context(), GPU{Device: world.Device(r), Gate: stage.Kernels})
					return err
				})
				var first, second *fabric.Cause
				require.ErrorAs(t, errs[0], &first)
				require.ErrorAs(t, errs[1], &second)
				assert.Equal(t, first.Text, second.Text)
				for _, err := range errs {
					assertDeviceError(t, err, fabric.ErrDevice, call+": hipErrorLaunchFailure (719)", "gfx1151")
				}
				for r, err := range each(2, func(r int) error { return groups[r].Host().Barrier() }) {
					require.NoError(t, err, "rank %d goes on", r)
				}
				require.NoError(t, errors.Join(closeAll(groups)...))
			})
		}
	}
}
