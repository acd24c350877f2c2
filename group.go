package hipfabric

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/stage"
)

// Group is this rank's part in a group of ranks. Its methods are safe from any goroutine; those of Host want one caller
// at a time.
type Group struct {
	cfg     Config
	log     *slog.Logger
	session *bootstrap.Session
	in      belonging
	host    *fabric.Collective
	paths   []Path
	wire    string // the chosen path of host memory, which its parts use too
	opened  time.Time
	status  *statusServer // nil without a StatusSocket
	rates   rates
	failed  chan error // the settled cause, once

	closeOnce sync.Once
	closed    chan struct{} // closed by Close, once the session is
	closeErr  error
	watcher   sync.WaitGroup

	family    *family
	sub       *bootstrap.Sub      // nil of the group that Open gave
	parent    *Group              // nil likewise
	splitting sync.Mutex          // held by Split and Device
	splits    uint64              // so far; under splitting, as devices is
	devices   uint64              // times that Device was tried
	mu        sync.Mutex          // guards the rest, and paths
	device    *channel            // nil before Device; set under splitting too
	children  map[*Group]struct{} // open ones
	policy    spinPolicy
}

// belonging is what a group shares with all its ranks: the session, or a part of it.
type belonging interface {
	fabric.Arbiter
	Done() <-chan struct{}
	OnCause(fn func(cause error))
}

// newGroup puts the pieces together and owns them from then on. All ranks have entered: nothing here may fail.
func newGroup(c Config, session *bootstrap.Session, transport fabric.Transport, paths []Path, status *statusServer, policy spinPolicy) *Group {
	g := &Group{cfg: c, log: c.Logger.With(keyGroup, c.Name, keyRank, c.Rank, keyWorld, c.World), session: session, in: session, opened: time.Now(),
		host:  fabric.New(transport, fabric.Options{Group: c.Name, Timeout: c.Timeout, Arbiter: session}),
		paths: paths, wire: transport.Kind(),
		failed: make(chan error, 1), closed: make(chan struct{}), status: status,
		family:   &family{groups: map[*Group]struct{}{}, proxies: map[string]*proxyLease{}, newProxy: stage.NewProxy},
		children: map[*Group]struct{}{}}
	g.family.add(g)
	session.OnCause(func(cause error) {
		transport.Abort(cause)
		g.failed <- cause // never blocks: it runs once
	})
	session.Watch(g.family.progress, nil)
	session.WatchGroups(g.family.last)
	session.OnReports(func(r []bootstrap.RankReport) { logFlight(g.log, session.Cause(), flights(r)) })
	g.log.Info("group open", append([]any{keyPath, transport.Kind(), keyLocalRanks, session.LocalRanks()}, policy.notes()...)...)
	g.tick()
	g.status.serve(g.document, g.tick)
	g.watcher.Go(g.watch)
	return g
}

// Rank is this rank, 0 to World-1.
func (g *Group) Rank() int { return g.cfg.Rank }

// World is the number of ranks.
func (g *Group) World() int { return g.cfg.World }

// LocalRank is the configured index among the ranks of this host.
func (g *Group) LocalRank() int { return g.cfg.LocalRank }

// Host has the collectives on host memory. It is there as long as the group and closed with it.
func (g *Group) Host() *fabric.Collective { return g.host }

// Control has ordered small messages between ranks. Its waits end by their context, the heartbeat or Close, never by
// Timeout: here followers idle, and ranks meet after loading for uneven times.
func (g *Group) Control() *bootstrap.Control { return g.session.Control() }

// Done is closed at the first failure of the group, or by Close.
func (g *Group) Done() <-chan struct{} { return g.in.Done() }

// Err is the group's one cause, the same on every rank: a *fabric.Cause. It is nil while the group is healthy, and
// after a Close of a healthy group. It never blocks.
func (g *Group) Err() error { return g.in.Cause() }

// Abort ends the group on every rank: calls in flight and later ones return ErrAborted with cause's text. It returns
// once the group's cause is settled, which an earlier failure may have been.
func (g *Group) Abort(cause error) { g.host.Abort(cause) }

// Paths are the ways to move data, each chosen or refused and why.
func (g *Group) Paths() []Path {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.paths)
}

// Stats reads the counters of the calls on host memory; those on device memory are the StreamCollective's own.
func (g *Group) Stats() fabric.Stats { return g.host.Stats() }

// Close says goodbye to the other ranks and frees everything: a call in flight, in another goroutine, returns
// ErrClosed, and so does every later one. A rank that still calls this one gets ErrPeerFailed: meet at a Barrier first.
// It blocks until the goodbye is out, or ctx ends; either way all is freed but what a device may still use. For that it
// waits five seconds at most for each group with a Device, whatever ctx says; what is left is freed once the device lets go
// of it, and an ErrDevice names it. It is idempotent and gives the first result. Its errors are *fabric.OpError with Op
// "close".
func (g *Group) Close(ctx context.Context) error {
	g.closeOnce.Do(func() {
		err := g.leave(ctx)
		close(g.closed)
		g.watcher.Wait()
		g.closeChildren(ctx)
		g.forget()
		if err != nil {
			g.closeErr = opError("close", &g.cfg, err)
		}
		g.log.Info("group closed", keyOpenFor, time.Since(g.opened).Round(time.Millisecond), keyCalls, g.host.Stats().Calls)
	})
	return g.closeErr
}

// watch logs what ended the group, away from the control thread, which must not wait for a log.
func (g *Group) watch() {
	select {
	case cause := <-g.failed:
		g.log.Error("group failed", keyErr, cause)
	case <-g.closed:
		select {
		case cause := <-g.failed:
			g.log.Error("group failed", keyErr, cause)
		default:
		}
	}
}
