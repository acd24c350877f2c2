package roce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/hipfabric/hipfabric/fabric"
)

// The steps' names, in votes.
const (
	stepDevices = "RoCE devices"
	stepAdverts = "RoCE adverts"
	stepRails   = "RoCE rails"
)

// survey takes the bring-up's steps 1 to 4: which lanes every pair has, the same on every rank. c has its defaults. It fails on all ranks
// alike, with the vote's error, whatever is wrong on one of them; it blocks as Mesh's calls. A world of 1 has no lanes and needs no RDMA.
func survey(ctx context.Context, m Mesh, d Driver, c Config) ([]circuit, error) {
	if m.World() == 1 {
		return nil, nil
	}
	mine, err := look(d, &c)
	if err := vote(ctx, m, stepDevices, err); err != nil {
		return nil, err
	}
	c.Logger.Info("RoCE ports", "taken", listedIn(mine.taken, "; ", maxLogged), "left", listedIn(mine.denied, "; ", maxLogged))
	blobs, err := m.AllGather(ctx, (&advert{c.settings(), mine.ends}).encode())
	if err != nil {
		return nil, err
	}
	adverts, err := readAdverts(blobs)
	if err := settle(ctx, m, stepAdverts, bytes.Join(blobs, nil), err); err != nil {
		return nil, err
	}
	ends := make([][]endpoint, len(adverts))
	for r := range adverts {
		ends[r] = adverts[r].ends
	}
	all, notes, err := circuits(ends, c.Stripes)
	if err := settle(ctx, m, stepRails, appendCircuits(nil, all), err); err != nil {
		return nil, err
	}
	tell(ctx, m.Rank(), c.Logger, all, notes)
	return all, nil
}

// look finds what this rank has to offer.
func look(d Driver, c *Config) (choice, error) {
	list, err := parseDevices(c.HCAs)
	if err != nil {
		return choice{}, err
	}
	ports, err := d.Ports()
	if err != nil {
		return choice{}, fabric.Unsupportedf("%v: %v", d, err)
	}
	return choose(ports, list, c.Addresses)
}

// vote ends a step that each rank took for itself.
func vote(ctx context.Context, m Mesh, step string, no error) error {
	if err := m.Vote(ctx, step, no); err != nil {
		return err
	}
	return no
}

// settle ends a step whose outcome, what was found or err, follows from what all ranks have seen alike. They compare it, and rank 0 votes
// for all, so that one reason is not said by every rank.
func settle(ctx context.Context, m Mesh, step string, found []byte, err error) error {
	if err != nil {
		found = []byte(err.Error())
	}
	sum := sha256.Sum256(found)
	sums, gone := m.AllGather(ctx, sum[:])
	if gone != nil {
		return gone
	}
	for r := range sums {
		if !bytes.Equal(sums[r], sums[0]) {
			err = mismatch(r, fmt.Sprintf("rank %d and rank 0 draw different conclusions from the same adverts; all ranks need one build", r))
			break
		}
	}
	if m.Rank() == 0 {
		return vote(ctx, m, step, err)
	}
	if no := m.Vote(ctx, step, nil); no != nil {
		return no
	}
	return err
}

// appendCircuits is their canonical form.
func appendCircuits(b []byte, all []circuit) []byte {
	for i := range all {
		for k := range all[i].Links {
			l := &all[i].Links[k]
			for _, v := range []int{all[i].A, all[i].B, all[i].Via, l.Rank[0], l.Rank[1], l.MTU} {
				b = binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
			}
			b = appendEndpoint(appendEndpoint(b, &l.End[0]), &l.End[1])
		}
	}
	return b
}

const maxLogged = 4 << 10 // bytes of a line's list

// tell logs this rank's rails, and what is odd: a warning on rank 0, since every rank finds the same.
func tell(ctx context.Context, rank int, log *slog.Logger, all []circuit, notes []string) {
	var rails []string
	said := map[string]bool{}
	for i := range all {
		c := &all[i]
		text := fmt.Sprintf("%v, MTU %d", c, c.mtu())
		if (c.A == rank || c.B == rank) && !said[text] {
			said[text] = true
			rails = append(rails, text)
		}
	}
	log.Info("RoCE rails", "rails", listedIn(rails, "; ", maxLogged))
	level := slog.LevelDebug
	if rank == 0 {
		level = slog.LevelWarn
	}
	for _, note := range notes {
		log.Log(ctx, level, "RoCE: "+note)
	}
}
