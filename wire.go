package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/fabric/tcp"
	"github.com/hipfabric/hipfabric/verbs"
)

// mesh is what wires need of the bootstrap: a session, or a part of one.
type mesh interface {
	tcp.Mesh
	Report(local error) (cause error)
	Cause() error
}

// openWires opens the first of Paths that all ranks can use, and says what became of each.
func openWires(ctx context.Context, c *Config, s *bootstrap.Session, policy spinPolicy) (fabric.Transport, []Path, error) {
	var paths []Path
	for i, name := range c.Paths {
		t, err := openWire(ctx, name, c, s, s.Vote, "host", policy)
		if err == nil {
			return t, append(paths, Path{Name: name, Chosen: true, Reason: "every rank has it"}), nil
		}
		if ctx.Err() != nil || s.Cause() != nil || i+1 == len(c.Paths) {
			return nil, nil, err
		}
		c.Logger.Warn("a path cannot be used, and the next one is tried", keyGroup, c.Name, keyRank, c.Rank, keyPath, name, "next", c.Paths[i+1], keyErr, err)
		paths = append(paths, Path{Name: name, Reason: err.Error()})
	}
	return nil, nil, fabric.Invalidf("Paths is empty; there is: %s", strings.Join(pathNames(), ", "))
}

// vote is nil on every rank where every rank's no is, and else an error on every rank.
type vote func(ctx context.Context, step string, no error) error

// openWire opens one path between the ranks of m, for one of a group's channels.
func openWire(ctx context.Context, name string, c *Config, m mesh, v vote, channel string, policy spinPolicy) (fabric.Transport, error) {
	if name == pathRoCE {
		t, err := roce.Open(ctx, ballot{m, v}, rdma(c.RDMA), roceConfig(c, m, channel, policy))
		if err != nil {
			return nil, err // not a nil *roce.Transport in an interface
		}
		return t, nil
	}
	settings := tcpConfig(c, policy)
	settings.Channel = channel
	t, err := tcp.Open(ctx, m, settings)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func roceConfig(c *Config, m mesh, channel string, policy spinPolicy) roce.Config {
	return roce.Config{Group: c.Name, Channel: channel, HCAs: c.HCAs, EagerBytes: c.EagerBytes, SlotBytes: roceSlot(c.EagerBytes), TrafficClass: c.TrafficClass,
		Timeout: c.Timeout, SpinFor: policy.spinFor, Yield: policy.yield, Verify: c.Verify, Failed: func(cause error) { _ = m.Report(cause) }, Logger: c.Logger}
}

// roceSlot is the payload of a slot, which an eager call must fit.
func roceSlot(eager int) int { return max(roce.DefaultSlotBytes, (eager+63)/64*64) }

// ballot is a mesh with a vote.
type ballot struct {
	mesh
	vote vote
}

func (b ballot) Vote(ctx context.Context, step string, no error) error { return b.vote(ctx, step, no) }

// show lets the ranks of a part of a session vote: each gives its no, and all get all of them.
func show(m mesh) vote {
	return func(ctx context.Context, step string, no error) error {
		var mine []byte
		if no != nil {
			mine = append([]byte{kindByte(no)}, no.Error()...)
		}
		blobs, err := m.AllGather(ctx, mine)
		if err != nil {
			return err
		}
		var kind error
		var texts []string
		for r, b := range blobs {
			if len(b) == 0 {
				continue
			}
			if kind == nil {
				kind = sentinels[int(b[0])%len(sentinels)]
			}
			texts = append(texts, fmt.Sprintf("rank %d: %s", r, b[1:]))
		}
		if texts == nil {
			return nil
		}
		return &fabric.Cause{Kind: kind, Peer: -1, From: -1, Text: fmt.Sprintf("vote on %s: no from %s", step, strings.Join(texts, "; "))}
	}
}

func kindByte(err error) byte {
	kind := sentinelOf(err)
	for i, s := range sentinels {
		if errors.Is(kind, s) {
			return byte(i)
		}
	}
	return 0
}

// rdma is the library's seam. One that is not there takes part in the votes all the same, and says why.
func rdma(l *verbs.Library) roce.Driver {
	if l != nil {
		return l.Seam()
	}
	l, err := verbs.Open(verbs.Config{})
	if err != nil {
		return absent{err: err}
	}
	return l.Seam()
}

// absent is the Driver of a host without libibverbs.
type absent struct {
	*verbs.Seam
	err error
}

func (a absent) String() string              { return "libibverbs" }
func (a absent) Ports() ([]roce.Port, error) { return nil, a.err }
