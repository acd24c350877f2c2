package stage_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// overRoCE opens a group over HCAs in memory, on a switch of two rails.
func overRoCE(t testing.TB, f *verbstest.Fabric, world int, group string) ([]*roce.Transport, []*bootstrap.Session) {
	t.Helper()
	sessions := sessions(t, world, group)
	ranks, errs := make([]*roce.Transport, world), make([]error, world)
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			h := f.Host(r)
			ranks[r], errs[r] = roce.Open(ctx, sessions[r], h.Library().Seam(), roce.Config{Group: group, Yield: true, Addresses: h.Addresses})
		})
	}
	all.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return ranks, sessions
}

// refused fails a test for what is logged.
type refused struct{ t *testing.T }

func (r refused) Write(b []byte) (int, error) {
	r.t.Errorf("logged: %s", b)
	return len(b), nil
}

func TestContractOverRoCE(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			if gate == stage.Kernels {
				notUnderRace(t)
			}
			s := hiptest.Settings{Integrated: gate == stage.Kernels, Devices: hipRanks}
			w := hiptest.Start(t, s)
			contract(t, func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
				f, err := verbstest.New(1, verbstest.Switch(max(world, 2), 2))
				require.NoError(t, err)
				t.Cleanup(func() {
					assert.Zero(t, f.Left())
					f.Close()
				})
				wires, sessions := overRoCE(t, f, world, o.Group)
				ranks := openHIP(t, w, world, stage.Config{Gate: gate, PartBytes: 64 << 10, Group: o.Group, Timeout: o.Timeout}, func(rank int, c *stage.Config) {
					c.Transport, c.Logger = wires[rank], slog.New(slog.NewTextHandler(refused{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
				})
				subjects := make([]fabrictest.Subject, world)
				for r := range subjects {
					subjects[r] = fabrictest.Stream(ranks[r].StreamCollective, ranks[r].device(func() error {
						ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
						defer cancel()
						_ = sessions[r].Close(ctx) // the others' goodbyes may never come
						return ranks[r].close()
					}))
				}
				return subjects
			})
		})
	}
}
