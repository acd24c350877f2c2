package hipfabric

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

// proposal is what a rank brings to a Split.
type proposal struct {
	name       string
	color, key int
	options    SplitOptions
}

const (
	proposalMagic = "hipfabric split\x01"
	proposalSize  = len(proposalMagic) + 4*8 + 1 + 1 + maxName
	meetingColor  = -2 // in splitKey: none that a rank can give
)

var errNoProposal = errors.New("no proposal of a split")

func (p *proposal) validate(parent string) error {
	switch full := p.groupName(parent); {
	case p.name == "" || strings.ContainsFunc(p.name, notInNames):
		return fabric.Invalidf("name is %q; use letters, digits and -_.:/", p.name)
	case p.color < NoColor || p.color > maxColor:
		return fabric.Invalidf("color is %d; 0 to %d, or %d to join none", p.color, maxColor, NoColor)
	case len(full) > maxName:
		return fabric.Invalidf("name is %q, which makes the group's %q: %d bytes; at most %d are allowed, take a shorter one", p.name, full, len(full), maxName)
	case p.options.Lanes < 0 || p.options.Lanes > maxLanes:
		return fabric.Invalidf("Lanes is %d; 0 to %d, 0 being 1", p.options.Lanes, maxLanes)
	}
	if t := p.options.Timeout; t != 0 && t != NoTimeout {
		return between("Timeout", t, minWait, maxWait, " of the group that is split; NoTimeout is none")
	}
	return nil
}

// groupName is what the new group of this rank is called.
func (p *proposal) groupName(parent string) string {
	if p.color == NoColor {
		return parent + "/" + p.name
	}
	return fmt.Sprintf("%s/%s.%d", parent, p.name, p.color)
}

func (p *proposal) encode() []byte {
	b := make([]byte, 0, proposalSize)
	b = append(b, proposalMagic...)
	for _, v := range []int64{int64(p.color), int64(p.key), int64(p.options.Lanes), int64(p.options.Timeout)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	isolated := byte(0)
	if p.options.Isolated {
		isolated = 1
	}
	b = append(b, isolated, byte(len(p.name)))
	b = append(b, p.name...)
	return b[:proposalSize]
}

func (p *proposal) decode(b []byte) error {
	b, ok := bytes.CutPrefix(b, []byte(proposalMagic))
	if !ok || int(b[33]) > maxName {
		return errNoProposal
	}
	at := func(i int) int { return int(binary.LittleEndian.Uint64(b[8*i:])) }
	*p = proposal{color: at(0), key: at(1), options: SplitOptions{Lanes: at(2), Timeout: time.Duration(at(3)), Isolated: b[32] != 0}}
	p.name = string(b[34:][:b[33]])
	return nil
}

// agree compares what all ranks must give alike.
func agree(all []proposal) error {
	for r := range all {
		for _, f := range []struct{ name, zero, theirs string }{
			{"name", all[0].name, all[r].name},
			{"Lanes", fmt.Sprint(all[0].options.Lanes), fmt.Sprint(all[r].options.Lanes)},
			{"Isolated", fmt.Sprint(all[0].options.Isolated), fmt.Sprint(all[r].options.Isolated)},
			{"Timeout", all[0].options.Timeout.String(), all[r].options.Timeout.String()},
		} {
			if f.zero != f.theirs {
				return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: r, From: 0,
					Text: fmt.Sprintf("%s: rank 0 has %q, rank %d has %q; all ranks of a Split must give the same", f.name, f.zero, r, f.theirs)}
			}
		}
	}
	return nil
}

// membersOf are the ranks of rank's color, in the new group's order, and where rank is among them.
func membersOf(all []proposal, rank int) (ranks []int, at int) {
	for r := range all {
		if all[r].color == all[rank].color {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
	return ranks, slices.Index(ranks, rank)
}

// splitKey names the n-th split's group of a color, the same on all its ranks and another for every group of a session.
func splitKey(parent *bootstrap.Sub, n uint64, color int) string {
	h := sha256.New()
	if parent != nil {
		h.Write([]byte(parent.Key()))
	}
	fmt.Fprintf(h, "/%d.%d", n, color)
	return base32.StdEncoding.EncodeToString(h.Sum(nil)[:10])
}
