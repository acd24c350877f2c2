package bootstrap

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/bits"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Session is a rank's membership in a joined group. All methods are safe for concurrent use.
type Session struct {
	cfg       Config
	log       *slog.Logger
	group     [sha256.Size]byte
	places    []place        // by rank, fixed from Join's return on
	published string         // the address this rank 0 wrote into its file
	nics      nics           // of this host
	ways      [][]way        // to each rank, fixed as places
	paths     [][]way        // of the control connections that this rank has
	reached   netip.AddrPort // where rank 0 was reached
	zone      string         // of the interface through which it was
	listener  *listener
	form      *formation // rank 0's
	control   *Control
	loop      *loop
	lost      []chan error // by rail to rank 0: its control path is to be dialled anew; the loop's

	cause   atomic.Pointer[fabric.Cause]
	settled chan struct{}   // closed once cause is set
	life    context.Context // over at the first failure or Close
	end     context.CancelFunc
	over    chan struct{} // closed when the loop has ended
	closing sync.Once
	wg      sync.WaitGroup
	clean   bool // the goodbye was delivered; valid once over is closed

	turn chan struct{} // holds a token while no gather is in progress

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change of what follows
	queue    []func()      // for the loop
	ended    bool          // the loop takes no more
	closed   bool
	id       [sessionSize]byte
	left     uint64 // ranks that have said goodbye
	parked   map[lane]parked
	arrived  []arrival // further paths, for the loop
	gather   gathering
	subs     map[string]*Sub // by key
	status   []RankStatus
	beats    []time.Time // when each status was true
	onCause  []func(error)
	onReport func([]RankReport)
	progress func() fabric.Progress
	records  func() []fabric.Record
	last     func(group string) (fabric.Progress, []fabric.Record)
}

// RankStatus is what is known of a rank. Rank 0 knows all; another rank itself and rank 0.
type RankStatus struct {
	Rank     int
	Host     string
	Progress fabric.Progress
	Age      time.Duration // since the Progress was sampled; negative when it never was
	Left     bool          // it has said goodbye
	Failed   bool          // the group's cause names it
}

// RankReport is a rank's last calls, gathered by rank 0 when the group has failed.
type RankReport struct {
	Rank     int
	Host     string
	Progress fabric.Progress
	Records  []fabric.Record // the last few, oldest first
	Missing  string          // why there is no report; empty when there is
}

func newSession(cfg Config) *Session {
	s := &Session{
		cfg:     cfg,
		log:     cfg.Logger.With("group", cfg.Group, "rank", cfg.Rank, "world", cfg.World),
		group:   sha256.Sum256([]byte(cfg.Group)),
		settled: make(chan struct{}),
		over:    make(chan struct{}),
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		parked:  map[lane]parked{},
		subs:    map[string]*Sub{},
		status:  make([]RankStatus, cfg.World),
		beats:   make([]time.Time, cfg.World),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.turn <- struct{}{}
	s.control = newControl(s)
	return s
}

// Rank is this rank, 0 to World-1.
func (s *Session) Rank() int { return s.cfg.Rank }

// World is the number of ranks.
func (s *Session) World() int { return s.cfg.World }

// ID is the random session that rank 0 drew for this group.
func (s *Session) ID() [16]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Loopback says whether all ranks share a host and its network namespace, so that none of their bytes meets a wire.
func (s *Session) Loopback() bool {
	for _, p := range s.places {
		if p.net != s.places[s.cfg.Rank].net {
			return false
		}
	}
	return true
}

// LocalRanks is how many ranks share this host, this one included.
func (s *Session) LocalRanks() int {
	n := 0
	for _, p := range s.places {
		if p.boot == s.places[s.cfg.Rank].boot {
			n++
		}
	}
	return n
}

// Control is for an engine's own small messages.
func (s *Session) Control() *Control { return s.control }

// Done is closed at the group's first failure or at Close.
func (s *Session) Done() <-chan struct{} { return s.life.Done() }

// Watch gives the session what its heartbeats and failure reports carry. Both are called on the control thread and must
// not block; nil stands for nothing to say.
func (s *Session) Watch(progress func() fabric.Progress, records func() []fabric.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress, s.records = progress, records
}

// WatchGroups gives the session, instead of Watch's, what its report of a failure carries: the progress and the last
// calls in the group that failed, "" being the session's own. last is called as Watch's.
func (s *Session) WatchGroups(last func(group string) (fabric.Progress, []fabric.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
}

// OnReports has fn called once on rank 0, on a goroutine of its own, when the group has failed and the last calls of
// all ranks have arrived or are overdue. Close waits for it. On other ranks fn is never called.
func (s *Session) OnReports(fn func([]RankReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onReport = fn
}

// OnCause has fn called once, with a *fabric.Cause, when the group's cause is settled: on the control thread, where it
// must not block, or at once on the caller's goroutine when the cause is known already.
func (s *Session) OnCause(fn func(cause error)) {
	s.mu.Lock()
	cause := s.cause.Load()
	if cause == nil {
		s.onCause = append(s.onCause, fn)
	}
	s.mu.Unlock()
	if cause != nil {
		fn(cause)
	}
}

// Status is what this rank knows of the ranks: rank 0 of all, the others of themselves and of rank 0.
func (s *Session) Status() []RankStatus {
	mine := s.sample()
	cause := s.cause.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	all := make([]RankStatus, s.cfg.World)
	for r := range all {
		st := s.status[r]
		st.Rank, st.Host, st.Age = r, s.places[r].host, -1
		if !s.beats[r].IsZero() {
			st.Age = now.Sub(s.beats[r])
		}
		if r == s.cfg.Rank {
			st.Progress, st.Age = mine, 0
		}
		st.Left = s.left&(1<<r) != 0
		st.Failed = cause != nil && cause.Peer == r
		all[r] = st
	}
	return all
}

// sample is this rank's progress.
func (s *Session) sample() fabric.Progress {
	s.mu.Lock()
	progress := s.progress
	s.mu.Unlock()
	if progress == nil {
		return fabric.Progress{Peer: -1}
	}
	return progress()
}

// Close leaves the group: with a goodbye, so that nobody takes it for a death, or, when the group has failed, with the
// cause. It returns when all goroutines and descriptors are gone, soon after ctx ends at the latest; its error says that the
// goodbye could not be delivered by then. It is idempotent.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.notify()
		s.mu.Unlock()
		s.end()
		stop := context.AfterFunc(ctx, func() { s.post(func() { s.loop.quit = true }) })
		s.post(func() { s.loop.leaving = true })
		s.release()
		<-s.over
		stop()
		s.wg.Wait()
	})
	if !s.clean {
		return s.opError("close", errors.Join(fabric.ErrTimeout, ctx.Err()))
	}
	return nil
}

// release closes what lives outside the loop.
func (s *Session) release() {
	if s.listener != nil {
		s.listener.close()
	}
	s.mu.Lock()
	for k, p := range s.parked {
		_ = p.conn.Close()
		delete(s.parked, k)
	}
	s.mu.Unlock()
	if path, ok := strings.CutPrefix(s.cfg.Master, filePrefix); ok && s.published != "" {
		unpublish(path, s.published)
	}
}

// post hands f to the loop, which runs it on its thread; false when the loop has ended.
func (s *Session) post(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.queue = append(s.queue, f)
	s.loop.p.wake()
	return true
}

// take empties the queue.
func (s *Session) take() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue
	s.queue = nil
	return q
}

// queued says whether the loop has something to take.
func (s *Session) queued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// notify wakes every await; mu is held.
func (s *Session) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await blocks until ready, which runs under mu, says so, and ends by ctx, by the group's failure or by Close. stuck,
// which may be nil and runs under mu too, says why ready can never come; that fails the group.
func (s *Session) await(ctx context.Context, op string, ready func() bool, stuck func() *fabric.Cause) error {
	for {
		s.mu.Lock()
		if err := s.gone(op); err != nil {
			s.mu.Unlock()
			return err
		}
		if ready() {
			s.mu.Unlock()
			return nil
		}
		var why *fabric.Cause
		if stuck != nil {
			why = stuck()
		}
		changed := s.changed
		s.mu.Unlock()
		if why != nil {
			return s.opError(op, s.Report(why))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gone is the error of every call once the group has failed or this rank has left; mu may be held.
func (s *Session) gone(op string) error {
	if cause := s.cause.Load(); cause != nil {
		return s.opError(op, cause)
	}
	if s.closed {
		return s.opError(op, fabric.ErrClosed)
	}
	return nil
}

// missing names a rank of the set that has left; mu is held.
func (s *Session) missing(set uint64) *fabric.Cause {
	if gone := s.left & set; gone != 0 {
		return leftCause(bits.TrailingZeros64(gone))
	}
	return nil
}

// others is the set of all ranks but this one.
func (s *Session) others() uint64 {
	all := ^uint64(0) >> (64 - s.cfg.World)
	return all &^ (1 << s.cfg.Rank)
}

func (s *Session) opError(op string, err error) error {
	e := &fabric.OpError{Op: op, Group: s.cfg.Group, Rank: s.cfg.Rank, Peer: -1, From: -1, Err: err}
	var c *fabric.Cause
	if errors.As(err, &c) {
		e.Peer, e.From, e.Part = c.Peer, c.From, c.Part
	}
	return e
}
