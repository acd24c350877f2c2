package stage_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/fabric/tcp"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/require"
)

// wired is one rank's end of a group over loopback.
type wired struct {
	session   *bootstrap.Session
	transport *tcp.Transport
}

// sessions joins the ranks of a group in this process.
func sessions(t testing.TB, world int, group string) []*bootstrap.Session {
	t.Helper()
	master := "file:" + filepath.Join(t.TempDir(), "master")
	all, errs := make([]*bootstrap.Session, world), make([]error, world)
	var joining sync.WaitGroup
	for r := range all {
		joining.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			all[r], errs[r] = bootstrap.Join(ctx, bootstrap.Config{Group: group, Rank: r, World: world, Master: master, Heartbeat: -1})
		})
	}
	joining.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return all
}

func overTCP(t testing.TB, world int, group string, spin time.Duration) []wired {
	t.Helper()
	ends, errs := make([]wired, world), make([]error, world)
	var all sync.WaitGroup
	for r, s := range sessions(t, world, group) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			ends[r].session = s
			ends[r].transport, errs[r] = tcp.Open(ctx, s, tcp.Config{Group: group, SpinFor: spin, Yield: true})
		})
	}
	all.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return ends
}

func tcpOpener(t *testing.T, s hiptest.Settings, gate stage.Gate, partBytes int) fabrictest.Opener {
	s.Devices = hipRanks
	w := hiptest.Start(t, s)
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		partBytes := partBytes
		if !small(o.Group) {
			partBytes = max(partBytes, 64<<10)
		}
		ends := overTCP(t, world, o.Group, 0)
		ranks := openHIP(t, w, world, stage.Config{Gate: gate, PartBytes: partBytes, Group: o.Group, Timeout: o.Timeout}, func(rank int, c *stage.Config) {
			c.Transport = ends[rank].transport
		})
		subjects := make([]fabrictest.Subject, world)
		for r := range subjects {
			s := ends[r].session
			subjects[r] = fabrictest.Stream(ranks[r].StreamCollective, ranks[r].device(func() error {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				_ = s.Close(ctx) // the others' goodbyes may never come
				return ranks[r].close()
			}))
		}
		return subjects
	}
}

func TestContractOverTCP(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			if gate == stage.Kernels {
				notUnderRace(t)
			}
			contract(t, tcpOpener(t, hiptest.Settings{Integrated: gate == stage.Kernels}, gate, 1024))
		})
	}
}
