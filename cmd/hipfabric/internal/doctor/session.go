package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

const (
	groupName = "doctor-links"
	channel   = "doctor"
	protocol  = "1" // of the orders below

	farRank, nearRank = 0, 1

	closeTime = 2 * time.Second // for the goodbye
)

// Ends says who the two are.
type Ends struct {
	Listen   []string // of the far end: what it binds, the first being its Peer
	Peer     string   // host:port of the far end
	Secret   []byte   // none means loopback only
	Insecure bool
	Logger   *slog.Logger
}

// session is a group of the two ends, and their way to talk.
type session struct {
	group *bootstrap.Session
	other int
	ctx   context.Context // ends with the group too
	end   context.CancelFunc
	buf   []byte
	lanes int // named so far: each connection is another lane
}

func join(ctx context.Context, e Ends, rank int, wait time.Duration) (*session, error) {
	g, err := bootstrap.Join(ctx, bootstrap.Config{Group: groupName, Rank: rank, World: 2, Master: e.Peer, Listen: e.Listen, Secret: e.Secret, Insecure: e.Insecure,
		Rails:       []string{"^0.0.0.0/0", "^::/0"}, // the way that was asked for alone
		OpenTimeout: wait, Settings: []bootstrap.Setting{{Name: "doctor links", Value: protocol}}, Logger: e.Logger})
	if err != nil {
		return nil, err
	}
	s := &session{group: g, other: 1 - rank, buf: make([]byte, bootstrap.MaxMessage)}
	s.ctx, s.end = context.WithCancel(ctx)
	go func() {
		select {
		case <-g.Done():
			s.end()
		case <-s.ctx.Done():
		}
	}()
	return s, nil
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), closeTime)
	defer cancel()
	s.end()
	_ = s.group.Close(ctx) // what was measured is there; a lost goodbye takes nothing from it
}

// lane opens the next connection of the pair: both ends call it, one by one and in the same order.
func (s *session) lane(ctx context.Context) (*net.TCPConn, error) {
	l := fabric.Lane{Channel: channel, Index: s.lanes}
	s.lanes++
	if s.other == farRank {
		return s.group.Dial(ctx, s.other, l)
	}
	return s.group.Accept(ctx, s.other, l)
}

func (s *session) say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.group.Control().Send(s.ctx, s.other, text)
}

func (s *session) hear(ctx context.Context, v any) error {
	n, _, err := s.group.Control().Recv(ctx, s.buf)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(s.buf[:n], v); err != nil {
		return fmt.Errorf("the other end sent what is no message of doctor links: %w", err)
	}
	return nil
}

// The orders of the near end.
const (
	orderMeet  = "meet"  // exchange of what each knows of itself
	orderTrips = "trips" // one lane; the far end answers each message
	orderRate  = "rate"
	orderEnd   = "end"
)

type order struct {
	What  string `json:"what"`
	Host  *Host  `json:"host,omitempty"`
	Wait  string `json:"wait,omitempty"`
	Lanes int    `json:"lanes,omitempty"`
	Ns    int64  `json:"ns,omitempty"` // how long
	ToFar bool   `json:"to_far,omitempty"`
}

// check bounds what an order may ask of the far end.
func (o order) check() error {
	switch {
	case o.Lanes < 0 || o.Lanes > MaxLanes:
		return fmt.Errorf("an order of %d lanes; 1 to %d are allowed", o.Lanes, MaxLanes)
	case o.Ns < 0 || o.Ns > int64(MaxTime):
		return fmt.Errorf("an order that takes %v; at most %v are allowed", time.Duration(o.Ns), MaxTime)
	}
	return nil
}

type answer struct {
	Err  string `json:"err,omitempty"`
	Host *Host  `json:"host,omitempty"`
	Half *half  `json:"half,omitempty"`
}

// The bounds of what is measured.
const (
	MaxLanes = 8
	MaxTime  = time.Minute // of one measurement
	minTime  = 10 * time.Millisecond
)
