package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

const (
	maxPending  = 64              // connections that have proven nothing yet
	helloTime   = 2 * time.Second // that each of them has
	maxSources  = 256             // addresses remembered as logged
	acceptPause = 100 * time.Millisecond
	bindTime    = time.Second
)

// listener accepts the connections of one rank. Strangers cost it a bounded number of goroutines for a bounded time.
type listener struct {
	sockets []*net.TCPListener // those asked for, then one for each cable
	asked   int
	// greet hears the hello and, once proven calls back, keeps the connection; an error closes it.
	greet  func(c *net.TCPConn, proven func()) error
	logger *slog.Logger
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	pending []*pending // oldest first
	proven  map[*pending]struct{}
	logged  map[netip.Addr]struct{}
}

type pending struct {
	conn   *net.TCPConn
	source netip.Addr
}

// listen binds every address that is this host's own; one that is not is skipped unless none is.
func listen(ctx context.Context, field string, addresses []netip.AddrPort, logger *slog.Logger) (*listener, error) {
	l := &listener{logger: logger, proven: map[*pending]struct{}{}, logged: map[netip.Addr]struct{}{}}
	lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: false}, KeepAlive: -1}
	if len(addresses) > maxListen {
		return nil, fabric.Invalidf("%s: %d addresses to listen on; at most %d are possible, name those to use", field, len(addresses), maxListen)
	}
	var foreign error
	for _, a := range addresses {
		socket, err := bind(ctx, &lc, a.String())
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			foreign = fabric.Invalidf("%s: %v is no address of this host, so this rank cannot listen there", field, a)
			continue
		}
		if err != nil {
			l.closeSockets()
			return nil, listenError(field, a, err)
		}
		l.sockets = append(l.sockets, socket.(*net.TCPListener))
	}
	if len(l.sockets) == 0 {
		return nil, foreign
	}
	l.asked = len(l.sockets)
	return l, nil
}

// widen binds the addresses of cables too, each to its interface: at the same port where it is free. One that cannot be
// bound is no rail.
func (l *listener) widen(ctx context.Context, cables []rail.Address) {
	port := addrPortOf(l.sockets[0].Addr()).Port()
	for _, c := range cables {
		lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: false}, KeepAlive: -1, Control: toDevice(c.Interface)}
		socket, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(c.Addr, port).String())
		if errors.Is(err, syscall.EADDRINUSE) {
			socket, err = lc.Listen(ctx, "tcp", netip.AddrPortFrom(c.Addr, 0).String())
		}
		if err != nil {
			l.logger.Warn("cannot listen on a rail", "interface", c.Interface, "addr", c.Addr.String(), "err", err)
			continue
		}
		l.sockets = append(l.sockets, socket.(*net.TCPListener))
	}
}

// bind gives a port that is in use a moment to become free: an earlier rank of this group may be about to end.
func bind(ctx context.Context, lc *net.ListenConfig, address string) (net.Listener, error) {
	for until := time.Now().Add(bindTime); ; {
		l, err := lc.Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil || time.Now().After(until) {
			return l, err
		}
		pause(ctx, acceptPause)
	}
}

func listenError(field string, a netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		taken := fabric.Invalidf("%s: port %d of %v is taken by another program or an earlier group; end that, or choose another port", field, a.Port(), a.Addr())
		return fmt.Errorf("%w (%w)", taken, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return fabric.Invalidf("%s: this user may not listen on %v; choose a port of 1024 or more", field, a)
	case tooManyFiles(err):
		return err
	default:
		return fabric.Invalidf("%s: cannot listen on %v: %v", field, a, err)
	}
}

// addresses are those bound, with their ports.
func (l *listener) addresses() []string {
	a := make([]string, 0, len(l.sockets))
	for _, s := range l.sockets {
		a = append(a, s.Addr().String())
	}
	return a
}

func (l *listener) bound() []netip.AddrPort {
	a := make([]netip.AddrPort, 0, len(l.sockets))
	for _, s := range l.sockets {
		a = append(a, addrPortOf(s.Addr()))
	}
	return a
}

// serve accepts until close.
func (l *listener) serve(greet func(c *net.TCPConn, proven func()) error) {
	ctx, stop := context.WithCancel(context.Background())
	l.greet, l.stop = greet, stop
	for _, s := range l.sockets {
		l.wg.Go(func() { l.accept(ctx, s) })
	}
}

func (l *listener) accept(ctx context.Context, s *net.TCPListener) {
	warned := false
	for {
		c, err := s.AcceptTCP()
		if err == nil {
			l.admit(c)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if !warned {
			warned = true
			l.logger.Warn("cannot accept connections", "addr", s.Addr().String(), "err", err)
		}
		pause(ctx, acceptPause)
	}
}

// admit gives c a goroutine and a place among the pending, for which the oldest of the busiest source may have to go.
func (l *listener) admit(c *net.TCPConn) {
	p := &pending{conn: c, source: sourceOf(c)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return
	}
	l.pending = append(l.pending, p)
	if len(l.pending) > maxPending {
		l.evict()
	}
	l.wg.Go(func() { l.hear(p) })
}

func (l *listener) evict() {
	count := map[netip.Addr]int{}
	busiest := 0
	for _, p := range l.pending {
		count[p.source]++
		busiest = max(busiest, count[p.source])
	}
	for i, p := range l.pending {
		if count[p.source] == busiest {
			l.pending = append(l.pending[:i], l.pending[i+1:]...)
			_ = p.conn.Close()
			return
		}
	}
}

func (l *listener) hear(p *pending) {
	_ = p.conn.SetDeadline(time.Now().Add(helloTime))
	err := l.greet(p.conn, func() { l.forget(p, true) })
	l.forget(p, false)
	if err != nil {
		_ = p.conn.Close()
		l.warn(p.source, err)
	}
}

// forget takes p from the pending; one that has proven itself no longer counts against strangers.
func (l *listener) forget(p *pending, proven bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.pending {
		if l.pending[i] == p {
			l.pending = append(l.pending[:i], l.pending[i+1:]...)
			break
		}
	}
	delete(l.proven, p)
	if proven {
		l.proven[p] = struct{}{}
		if l.closed {
			_ = p.conn.Close()
		}
	}
}

// warn logs the first oddity of each source.
func (l *listener) warn(source netip.Addr, err error) {
	l.mu.Lock()
	_, known := l.logged[source]
	if known || l.closed || len(l.logged) >= maxSources {
		l.mu.Unlock()
		return
	}
	l.logged[source] = struct{}{}
	l.mu.Unlock()
	l.logger.Warn("a connection was refused; later ones from there are not logged", "addr", source.String(), "err", err)
}

// close ends accepting and everything unfinished, and waits for the goroutines.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	for _, p := range l.pending {
		_ = p.conn.Close()
	}
	for p := range l.proven {
		_ = p.conn.Close()
	}
	l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
	l.closeSockets()
	l.wg.Wait()
}

func (l *listener) closeSockets() {
	for _, s := range l.sockets {
		_ = s.Close()
	}
}

func sourceOf(c net.Conn) netip.Addr { return addrOf(c.RemoteAddr()) }

func addrOf(a net.Addr) netip.Addr { return addrPortOf(a).Addr() }

func addrPortOf(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
