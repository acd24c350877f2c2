package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/tcp"
)

// Open joins the group's ranks and brings up the best path that all of them can use; every rank calls it. It blocks
// until all are there, ctx or Config.OpenTimeout ends, or one of them fails. Every error is an *fabric.OpError with Op
// "open": ErrInvalid for a setting (nothing was opened), ErrUnsupported for what this system lacks, ErrUnauthorized for
// another secret, ErrMismatch for other settings or versions, ErrTimeout, ErrPeerFailed. After an error nothing of the
// group is left open.
func Open(ctx context.Context, cfg Config) (*Group, error) {
	c := cfg.withDefaults()
	if err := c.validateAlone(); err != nil {
		return nil, openError(&cfg, err)
	}
	if c.SecretFile != "" {
		secret, err := ReadSecret(c.SecretFile)
		if err != nil {
			return nil, openError(&c, err)
		}
		c.Secret = secret
	}
	status, err := listenStatus(c.StatusSocket)
	if err != nil {
		return nil, openError(&c, err)
	}
	g, err := join(ctx, c, status, openWires)
	if err != nil {
		status.close()
		return nil, openError(&c, err)
	}
	return g, nil
}

// opener brings up a path between the ranks of session.
type opener func(ctx context.Context, c *Config, session *bootstrap.Session, policy spinPolicy) (fabric.Transport, []Path, error)

// join meets the other ranks and builds the path; c is valid and complete.
func join(ctx context.Context, c Config, status *statusServer, open opener) (*Group, error) {
	ctx, cancel := context.WithTimeout(ctx, c.OpenTimeout)
	defer cancel()
	session, err := bootstrap.Join(ctx, bootstrapConfig(&c))
	if err != nil {
		return nil, err
	}
	var g *Group
	if err = parts(&c); err == nil {
		g, err = build(ctx, c, session, status, open)
	}
	if err != nil {
		_ = session.Close(ctx) // err is why; what the goodbye says adds nothing
		return nil, err
	}
	return g, nil
}

// build opens the path and enters the group only once every rank has it: prepare, vote, then enter.
func build(ctx context.Context, c Config, session *bootstrap.Session, status *statusServer, open opener) (*Group, error) {
	policy := spin(c.SpinFor, session.LocalRanks(), usableCores())
	transport, paths, err := open(ctx, &c, session, policy)
	if err != nil {
		// The report ends the others' wait for this rank's connections.
		return nil, session.Report(openCause(c.Rank, err))
	}
	if err := session.Vote(ctx, transport.Kind(), nil); err != nil {
		_ = transport.Close()
		return nil, err
	}
	return newGroup(c, session, transport, paths, status, policy), nil
}

// settings are what all ranks must agree on, but for those that the bootstrap compares itself.
func settings(c *Config) []bootstrap.Setting {
	return []bootstrap.Setting{
		{Name: "Timeout", Value: c.Timeout.String()},
		{Name: "Paths", Value: strings.Join(c.Paths, ",")},
		{Name: "EagerBytes", Value: strconv.Itoa(c.EagerBytes)},
		{Name: "Window", Value: strconv.Itoa(c.Window)},
		{Name: "PartBytes", Value: strconv.Itoa(c.PartBytes)},
		{Name: "MailboxBytes", Value: strconv.Itoa(c.MailboxBytes)},
		{Name: "Verify", Value: strconv.FormatBool(c.Verify)},
		{Name: "LanesAuto", Value: strconv.FormatBool(c.Lanes == LanesAuto)},
	}
}

func bootstrapConfig(c *Config) bootstrap.Config {
	return bootstrap.Config{Group: c.Name, Rank: c.Rank, World: c.World, Master: c.Master, Listen: c.Listen, Rails: c.Rails, Secret: c.Secret,
		Insecure: c.Insecure, OpenTimeout: c.OpenTimeout, Heartbeat: c.Heartbeat, VerdictBusy: c.VerdictBusy,
		VerdictIdle: c.VerdictIdle, Settings: settings(c), Logger: c.Logger}
}

func tcpConfig(c *Config, policy spinPolicy) tcp.Config {
	t := tcp.Config{Group: c.Name, Channel: "host", EagerBytes: c.EagerBytes, Window: c.Window, Lanes: c.Lanes, SocketBuffer: c.SocketBuffer,
		SpinFor: policy.spinFor, Yield: policy.yield, Verify: c.Verify, Logger: c.Logger}
	if c.LaneCache != "" {
		t.LaneCache = laneFile(c.LaneCache)
	}
	return t
}

// openCause is what this rank tells the others when its own part of Open failed.
func openCause(rank int, err error) *fabric.Cause {
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		return cause
	}
	return &fabric.Cause{Kind: sentinelOf(err), Peer: rank, From: rank, Text: fmt.Sprintf("rank %d could not open its path: %v", rank, err), Err: err}
}

// openError is the one shape of Open's errors.
func openError(c *Config, err error) error { return opError("open", c, err) }

func opError(op string, c *Config, err error) error {
	if already, ok := err.(*fabric.OpError); ok { //nolint:errorlint // the outermost only: what it wraps is the cause
		same := *already
		same.Op, same.Group = op, c.Name
		return &same
	}
	e := &fabric.OpError{Op: op, Group: c.Name, Rank: c.Rank, Peer: -1, From: -1, Err: err}
	var cause *fabric.Cause
	switch {
	case errors.As(err, &cause):
		e.Peer, e.From = cause.Peer, cause.From
	case !errors.Is(err, sentinelOf(err)):
		e.Err = &fabric.Cause{Kind: sentinelOf(err), Peer: -1, From: c.Rank, Text: err.Error(), Err: err}
	}
	return e
}

// sentinels are the module's errors, what is also another one first.
var sentinels = [...]error{fabric.ErrAborted, fabric.ErrInvalid, fabric.ErrCapture, fabric.ErrUnsupported, fabric.ErrMismatch, fabric.ErrDesync,
	fabric.ErrPeerFailed, fabric.ErrDevice, fabric.ErrTimeout, fabric.ErrUnauthorized, fabric.ErrClosed}

// sentinelOf finds which of the module's errors err is; a context's end is a timeout or an abort.
func sentinelOf(err error) error {
	for _, s := range sentinels[1:] {
		if errors.Is(err, s) {
			return s
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fabric.ErrTimeout
	case errors.Is(err, errors.ErrUnsupported):
		return fabric.ErrUnsupported
	}
	return fabric.ErrAborted
}
