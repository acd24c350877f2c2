package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

const (
	dialTime    = 3 * time.Second  // to connect, and for the other end to say that it speaks the protocol
	replyTime   = 10 * time.Second // for one that does to finish the hello
	firstPause  = 10 * time.Millisecond
	longestWait = 400 * time.Millisecond // between attempts

	firstNotice = 3 * time.Second // of waiting for rank 0
	laterNotice = 30 * time.Second
)

// Join authenticates to rank 0 and meets all ranks, in any order of start. It blocks until all have come, or until
// OpenTimeout or ctx ends. From its return on the control connections carry heartbeats and verdicts, until Close.
//
// Errors are *fabric.OpError: ErrInvalid for the configuration, ErrUnauthorized when the secrets differ, ErrMismatch on
// every rank when worlds, versions or settings differ or a rank is there twice, ErrTimeout, ErrAborted when ctx was
// cancelled, and ErrUnsupported for a World above 1 where the process may open too few files, and on systems other than
// linux and darwin.
func Join(ctx context.Context, cfg Config) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fabric.OpError{Op: "open", Group: cfg.Group, Rank: cfg.Rank, Peer: -1, From: -1, Err: err}
	}
	s := newSession(cfg.withDefaults())
	ctx, cancel := context.WithTimeout(ctx, s.cfg.OpenTimeout)
	defer cancel()
	if err := s.join(ctx); err != nil {
		if s.form != nil {
			s.form.abandon()
		}
		s.end()
		s.release()
		return nil, s.opError("open", s.cfg.filesOr(err))
	}
	s.tell()
	return s, nil
}

func (s *Session) join(ctx context.Context) error {
	if s.cfg.World == 1 {
		rand.Read(s.id[:])
		s.places = []place{here()}
		s.begin(newSolo(), nil)
		return nil
	}
	if err := supported(); err != nil {
		return err
	}
	if err := s.cfg.checkFiles(sock.OpenFiles()); err != nil {
		return err
	}
	if err := s.look(); err != nil {
		return err
	}
	var links []*link
	var err error
	if s.cfg.Rank == 0 {
		links, err = s.lead(ctx)
	} else {
		links, err = s.follow(ctx)
	}
	if err != nil {
		return err
	}
	p, err := newPoller()
	if err != nil {
		for _, k := range links {
			k.close()
		}
		return err
	}
	s.begin(p, links)
	return nil
}

func (s *Session) begin(p poller, links []*link) {
	l := newLoop(s, p, links)
	s.mu.Lock()
	s.loop = l // a further path may be here already
	s.mu.Unlock()
	s.wg.Go(l.run)
	s.keepPaths()
}

// lead is rank 0's way: listen, and collect the others.
func (s *Session) lead(ctx context.Context) ([]*link, error) {
	began := time.Now()
	rand.Read(s.id[:])
	if err := s.listen(ctx, netip.Addr{}); err != nil {
		return nil, err
	}
	s.form = newFormation(s)
	s.listener.serve(s.greet)
	if path, ok := strings.CutPrefix(s.cfg.Master, filePrefix); ok {
		s.published = s.listener.addresses()[0]
		if err := publish(path, s.published); err != nil {
			return nil, err
		}
	}
	return s.form.wait(ctx, began)
}

func (s *Session) listen(ctx context.Context, local netip.Addr) error {
	field, addresses, err := s.cfg.listenAddresses(ctx, local)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if s.cfg.Insecure && len(s.cfg.Secret) == 0 && !a.Addr().IsLoopback() {
			s.log.Warn("no secret: anyone who reaches this address can join the group", "addr", a.String())
			break
		}
	}
	if name := s.cfg.Master; field == "Master" && onlyHere(name, addresses) {
		s.log.Warn("this name stands for this host alone: ranks of other hosts cannot reach it; see /etc/hosts", "master", name)
	}
	if s.listener, err = listen(ctx, field, addresses, s.log); err == nil {
		s.listener.widen(ctx, s.cables(s.listener.bound()))
	}
	return err
}

// onlyHere says whether a host name, which localhost is not, resolves to loopback alone.
func onlyHere(hostport string, addresses []netip.AddrPort) bool {
	host, _, err := net.SplitHostPort(hostport)
	if _, notName := netip.ParseAddr(host); err != nil || notName == nil || host == "localhost" || strings.HasPrefix(hostport, filePrefix) {
		return false
	}
	return !slices.ContainsFunc(addresses, func(a netip.AddrPort) bool { return !a.Addr().IsLoopback() })
}

// sighting is what was last seen where rank 0 should be.
type sighting struct {
	last      error
	strangers int
}

func (g *sighting) note(err error) {
	g.last = err
	if errors.Is(err, errStranger) {
		g.strangers++
	}
}

func (g *sighting) String() string {
	text := "no attempt was made"
	if g.last != nil {
		text = "last error: " + g.last.Error()
	}
	if g.strangers > 0 {
		text += fmt.Sprintf("; %d times something that is no hipfabric answered", g.strangers)
	}
	return text
}

// notice says when somebody who waits should hear why: soon, then seldom.
type notice struct{ next time.Duration }

func (n *notice) due(waited time.Duration) bool {
	if waited < max(n.next, firstNotice) {
		return false
	}
	n.next = waited + laterNotice
	return true
}

// overdue says whether ctx has ended or is about to: what fails then says nothing of the other end.
func overdue(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// follow is every other rank's way: dial until rank 0 starts the group.
func (s *Session) follow(ctx context.Context) ([]*link, error) {
	began := time.Now()
	var seen sighting
	var said notice
	wait := firstPause
	for {
		links, err := s.attempt(ctx, &seen)
		if links != nil || err != nil {
			return links, err
		}
		if waited := time.Since(began); said.due(waited) {
			s.log.Info("waiting for rank 0", "addr", s.cfg.Master, "for", waited.Round(time.Second), "err", seen.last)
		}
		if wait = backOff(ctx, wait); ctx.Err() != nil {
			return nil, endedBy(ctx, 0, -1, fmt.Sprintf("rank 0 at %s not reached in %v; %v", s.cfg.Master,
				time.Since(began).Round(time.Millisecond), &seen))
		}
	}
}

// backOff waits about d, and says how long to wait next time. Jitter keeps many ranks from coming together.
func backOff(ctx context.Context, d time.Duration) time.Duration {
	pause(ctx, d/2+mathrand.N(d))
	return min(2*d, longestWait)
}

// attempt tries every address of rank 0 once. Only an error is final; without one and without links it is worth
// another try.
func (s *Session) attempt(ctx context.Context, seen *sighting) ([]*link, error) {
	addresses, err := s.cfg.masterAddresses(ctx)
	if err != nil {
		if errors.Is(err, fabric.ErrInvalid) {
			return nil, err
		}
		seen.note(err)
		return nil, nil
	}
	for _, a := range addresses {
		links, err := s.knock(ctx, a)
		if links != nil {
			return links, nil
		}
		var cause *fabric.Cause
		if errors.As(err, &cause) || errors.Is(err, fabric.ErrInvalid) || tooManyFiles(err) {
			return nil, err
		}
		if !overdue(ctx) || seen.last == nil {
			seen.note(fmt.Errorf("%v: %w", a, err))
		}
	}
	return nil, nil
}

// knock goes the whole way at one address: connect, hello, join, and wait for the start.
func (s *Session) knock(ctx context.Context, a netip.AddrPort) ([]*link, error) {
	h := hello{version: s.cfg.version, role: roleControl, rank: uint16(s.cfg.Rank), group: s.group}
	c, x, r, err := s.dial(ctx, a, h)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	links, err := s.enter(ctx, c, a, x, r)
	if err != nil {
		_ = c.Close()
	}
	return links, err
}

// dial connects and says hello. A wrong secret is a *fabric.Cause; other errors are worth another try.
func (s *Session) dial(ctx context.Context, a netip.AddrPort, h hello) (*net.TCPConn, *exchange, reply, error) {
	return s.dialBy(ctx, net.Dialer{Timeout: dialTime, KeepAlive: -1}, a, h)
}

func (s *Session) dialBy(ctx context.Context, d net.Dialer, a netip.AddrPort, h hello) (*net.TCPConn, *exchange, reply, error) {
	conn, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, nil, reply{}, err
	}
	c := conn.(*net.TCPConn)
	_ = c.SetDeadline(time.Now().Add(dialTime))
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	x, r, err := dialHello(c, s.cfg.Secret, h, func() {
		if ctx.Err() == nil {
			_ = c.SetDeadline(time.Now().Add(replyTime))
		}
	})
	stop()
	if err != nil {
		_ = c.Close()
		if errors.Is(err, errRefused) || errors.Is(err, errProof) {
			err = &fabric.Cause{Kind: fabric.ErrUnauthorized, Peer: int(h.peer), From: s.cfg.Rank, Err: err,
				Text: fmt.Sprintf("rank %d at %v: %v: the two have different secrets, or one has none", h.peer, a, err)}
		}
		return nil, nil, reply{}, err
	}
	return c, x, r, nil
}

var errRunning = errors.New("a group is running there; if it is an earlier one, it has not ended yet")

// enter joins over a proven connection and waits for the start.
func (s *Session) enter(ctx context.Context, c *net.TCPConn, a netip.AddrPort, x *exchange, r reply) ([]*link, error) {
	if r.version != s.cfg.version {
		return nil, versionMismatch(r.version, s.cfg.Rank, s.cfg.version)
	}
	if err := sock.Tune(c, sock.Control); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.id = r.session
	s.mu.Unlock()
	mine, err := s.home(ctx, c)
	if err != nil {
		return nil, err
	}
	out, in, err := x.frames(r.session)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	j := joining{world: s.cfg.World, group: s.cfg.Group, settings: s.cfg.compared(), place: mine}
	if err := writeFrame(c, out, frameJoin, j.encode()); err != nil {
		return nil, err
	}
	t, payload, err := readFrame(c, in)
	if err != nil {
		return nil, fmt.Errorf("waiting for the others: %w", err)
	}
	switch t {
	case frameVerdict:
		cause, err := decodeCause(payload)
		if err != nil {
			return nil, err
		}
		return nil, cause
	case frameRunning:
		return nil, errRunning
	case frameStart:
		places, err := decodePlaces(payload)
		if err != nil || len(places) != s.cfg.World {
			return nil, fmt.Errorf("%w: a table of %d ranks", errFrame, len(places))
		}
		s.settle(places)
	default:
		return nil, fmt.Errorf("%w: type %d instead of a start", errFrame, t)
	}
	s.reached = a
	fd, err := sock.Take(c)
	if fd < 0 {
		return nil, err
	}
	return []*link{newLink(0, fd, in, out)}, nil
}

// home opens this rank's own listener, once, at the address from which rank 0 was reached, and at its rails. The highest
// rank accepts from nobody, and only says where it is.
func (s *Session) home(ctx context.Context, c *net.TCPConn) (place, error) {
	mine := here()
	local := addrOf(c.LocalAddr())
	s.zone = local.Zone()
	mine.from, mine.met = local.WithZone(""), addrOf(c.RemoteAddr()).WithZone("")
	if s.cfg.Rank == s.cfg.World-1 {
		return s.announce(ctx, mine, local), nil
	}
	if s.listener == nil {
		if err := s.listen(ctx, local); err != nil {
			return mine, err
		}
		s.listener.serve(s.greet)
	}
	return s.advertise(mine), nil
}

// greet hears a connection to this rank's listener.
func (s *Session) greet(c *net.TCPConn, proven func()) error {
	h, x, err := listenHello(c, s.cfg.Secret, reply{version: s.cfg.version, session: s.ID()}, s.expect)
	if err != nil {
		return err
	}
	proven()
	switch {
	case h.role == roleControl && s.form != nil:
		return s.form.greet(c, h, x)
	case h.role == roleData:
		return s.park(c, h)
	case h.role == rolePath && s.form != nil:
		return s.takePath(c, h, x)
	default:
		return fmt.Errorf("rank %d: a hello of role %d, which this rank does not take", h.rank, h.role)
	}
}

// expect is the binding of a hello as this rank knows it to be: of its own session and group, and to itself.
func (s *Session) expect(h hello) []byte {
	h.session, h.group, h.peer = s.ID(), s.group, uint16(s.cfg.Rank)
	return h.binding()
}
