package hipfabric

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configs are world ranks of one group that meet on loopback, quiet, with change applied to each.
func configs(t testing.TB, world int, change func(*Config)) []Config {
	master := "file:" + filepath.Join(t.TempDir(), "master")
	all := make([]Config, world)
	for r := range all {
		all[r] = Config{Rank: r, World: world, LocalRank: r, Master: master, OpenTimeout: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		if change != nil {
			change(&all[r])
		}
	}
	return all
}

// openFiles counts the files of this process, where the system lists them.
func openFiles() int {
	entries, _ := os.ReadDir("/dev/fd")
	return len(entries)
}

// each runs fn for all ranks at once and gives their errors.
func each(world int, fn func(rank int) error) []error {
	errs := make([]error, world)
	var ranks sync.WaitGroup
	for r := range world {
		ranks.Go(func() { errs[r] = fn(r) })
	}
	ranks.Wait()
	return errs
}

func openAll(ctx context.Context, all []Config) ([]*Group, []error) {
	groups := make([]*Group, len(all))
	errs := each(len(all), func(r int) (err error) {
		groups[r], err = Open(ctx, all[r])
		return err
	})
	return groups, errs
}

// opened is a healthy group, closed at the test's end.
func opened(t testing.TB, world int, change func(*Config)) []*Group {
	groups, errs := openAll(t.Context(), configs(t, world, change))
	t.Cleanup(func() { closeAll(groups) })
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return groups
}

func closeAll(groups []*Group) []error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return each(len(groups), func(r int) error {
		if groups[r] == nil {
			return nil
		}
		return groups[r].Close(ctx)
	})
}
