package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testSecret = []byte("a secret of the test's own, 32 by")

// patience bounds every wait of a test; only a hang reaches it.
const patience = 60 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// configs are those of world ranks that meet through a file.
func configs(t *testing.T, world int) []Config {
	master := filePrefix + filepath.Join(t.TempDir(), "master")
	all := make([]Config, world)
	for r := range all {
		all[r] = Config{Rank: r, World: world, Master: master, Secret: testSecret, OpenTimeout: patience}
	}
	return all
}

// joinAll joins all ranks at once.
func joinAll(ctx context.Context, all []Config) ([]*Session, []error) {
	sessions, errs := make([]*Session, len(all)), make([]error, len(all))
	each(len(all), func(r int) { sessions[r], errs[r] = Join(ctx, all[r]) })
	return sessions, errs
}

func each(n int, do func(r int)) {
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { do(r) })
	}
	wg.Wait()
}

// group joins ranks that leave, all at once, at the test's end.
func group(t *testing.T, all []Config) []*Session {
	t.Helper()
	sessions, errs := joinAll(testContext(t), all)
	t.Cleanup(func() { closeAll(sessions) })
	require.NoError(t, errors.Join(errs...))
	return sessions
}

func closeAll(sessions []*Session) {
	each(len(sessions), func(r int) {
		if sessions[r] != nil {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = sessions[r].Close(ctx)
		}
	})
}

// freePort is one that nobody listens on just now.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
}
