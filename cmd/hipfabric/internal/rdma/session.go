package rdma

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

const (
	groupName = "doctor-rdma"
	protocol  = "1" // of the orders below

	farRank, nearRank = 0, 1

	answerTime = 10 * time.Second // for what needs no measurement
	closeTime  = 2 * time.Second  // for the goodbye
	maxGIDs    = 64               // of a port, that the other end hears of
)

// session is a group of the two ends, and their way to talk.
type session struct {
	group *bootstrap.Session
	other int
	ctx   context.Context // ends with the group too
	end   context.CancelFunc
	buf   []byte
}

func join(ctx context.Context, e doctor.Ends, rank int, wait time.Duration) (*session, error) {
	g, err := bootstrap.Join(ctx, bootstrap.Config{Group: groupName, Rank: rank, World: 2, Master: e.Peer, Listen: e.Listen, Secret: e.Secret, Insecure: e.Insecure,
		Rails:       []string{"^0.0.0.0/0", "^::/0"}, // the way that was asked for alone
		OpenTimeout: wait, Settings: []bootstrap.Setting{{Name: "doctor rdma", Value: protocol}}, Logger: e.Logger})
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
	_ = s.group.Close(ctx) // what was tried is there; a lost goodbye takes nothing from it
}

// lane is a connection of the pair, whose addresses are the way's.
func (s *session) lane() (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, answerTime)
	defer cancel()
	if s.other == farRank {
		return s.group.Dial(ctx, s.other, fabric.Lane{Channel: "doctor"})
	}
	return s.group.Accept(ctx, s.other, fabric.Lane{Channel: "doctor"})
}

func (s *session) say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.group.Control().Send(s.ctx, s.other, text)
}

func (s *session) hear(wait time.Duration, v any) error {
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	n, _, err := s.group.Control().Recv(ctx, s.buf)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(s.buf[:n], v); err != nil {
		return fmt.Errorf("the other end sent what is no message of doctor rdma: %w", err)
	}
	return nil
}

// The orders of the near end.
const (
	orderMeet = "meet" // exchange of what each has
	orderOpen = "open" // a queue pair of the far end's, connected to the near one's
	orderPing = "ping" // so many messages, which the far end answers
	orderShut = "shut" // the queue pair
	orderEnd  = "end"
)

type order struct {
	What  string   `json:"what"`
	Host  *Host    `json:"host,omitempty"`
	End   *RailEnd `json:"end,omitempty"` // the far end's, to be opened
	MTU   int      `json:"mtu,omitempty"`
	Door  *Door    `json:"door,omitempty"` // the near end's
	Bytes int      `json:"bytes,omitempty"`
	Count int      `json:"count,omitempty"`
}

// check bounds what an order may ask of the far end.
func (o order) check() error {
	switch {
	case o.Bytes < 0 || o.Bytes > largeBytes:
		return fmt.Errorf("an order of messages of %d bytes; at most %d are allowed", o.Bytes, largeBytes)
	case o.Count < 0 || o.Count > maxTrips:
		return fmt.Errorf("an order of %d messages; at most %d are allowed", o.Count, maxTrips)
	case o.What == orderOpen && (o.End == nil || o.Door == nil):
		return fmt.Errorf("an order to open a queue pair that does not say which")
	}
	return nil
}

type answer struct {
	Err   string `json:"err,omitempty"`
	Cause string `json:"cause,omitempty"`
	Host  *Host  `json:"host,omitempty"`
	Door  *Door  `json:"door,omitempty"`
	Wrong int    `json:"wrong,omitempty"`
}

func (a *answer) fail(err error) {
	if err != nil {
		a.Err, a.Cause = err.Error(), cause(err)
	}
}

// told is the host as the other end hears of it: a message has a bound, and a table of GIDs may have thousands.
func (h *Host) told() *Host {
	t := *h
	t.Devices = slices.Clone(h.Devices)
	for i := range t.Devices {
		ports := slices.Clone(t.Devices[i].Ports)
		for j := range ports {
			p := &ports[j]
			if len(p.GIDs) > maxGIDs {
				list := p.best()
				p.GIDs = list[:min(len(list), maxGIDs)]
			}
			counts := map[string]int64{}
			for name, v := range p.Counters {
				if v != 0 {
					counts[name] = v
				}
			}
			p.Counters = counts
		}
		t.Devices[i].Ports = ports
	}
	return &t
}
