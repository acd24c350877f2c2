package roce

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

// mailHop is this rank's end of a stripe to a peer.
type mailHop struct {
	*wire
	stripe  int
	lkey    uint32 // of the letters, for its HCA
	rkey    uint32
	at      uint64          // of the peer's letters
	key     uint32          // likewise
	arrived [classes]uint64 // calls of the peer's that completions have told of
	noted   uint64          // notes likewise
	notes   uint64          // that were sent; the last of them ends with that request
	noteEnd uint64
	heeded  uint64 // notes of the peer's that were read
	count   counters
}

// letter is a request for a piece that goes to a place in the peer's letters.
func (h *mailHop) letter(at int, p Piece) Work {
	return Work{Pieces: [2]Piece{p}, Remote: h.at + uint64(at), RKey: h.key}
}

// flag is one that stores v there.
func (h *mailHop) flag(at int, v uint64) Work {
	w := h.letter(at, h.share.word(v))
	w.Inline = true
	return w
}

// stripesOf gives every pair as many circuits as the pair with most has, since the kernels count one number of stripes: some rails carry
// several then.
func stripesOf(all []circuit) (striped []circuit, stripes int, err error) {
	for i := range all {
		if c := &all[i]; c.Via >= 0 {
			return nil, 0, fabric.Unsupportedf("ranks %d and %d have no rail between them but through rank %d: the mailbox needs one for each pair, since it relays nothing; join them by a cable or a switch", c.A, c.B, c.Via)
		}
	}
	var pairs [][]circuit
	for i := range all {
		if i == 0 || all[i].A != all[i-1].A || all[i].B != all[i-1].B {
			pairs = append(pairs, nil)
		}
		last := &pairs[len(pairs)-1]
		*last = append(*last, all[i])
		stripes = max(stripes, len(*last))
	}
	for _, pair := range pairs {
		for k := range stripes {
			c := pair[k%len(pair)]
			c.Links = slices.Clone(c.Links) // a stripe's own, though others go the same way
			striped = append(striped, c)
		}
	}
	return striped, stripes, nil
}

// build opens devices, makes queue pairs, and has the devices know the letters. Peers may write flags and what comes behind them.
func (m *Mailbox) build(all []circuit, mine []*wire) error {
	if _, err := m.wires.build(all, mine); err != nil {
		return err
	}
	whole := m.own.mem
	theirs := whole[mailFlags:m.own.sendAt(0, 0)]
	lkeys, rkeys := make([]uint32, len(m.wires.hcas)), make([]uint32, len(m.wires.hcas))
	for i, h := range m.wires.hcas {
		for _, r := range []struct {
			mem    []byte
			remote bool
		}{{whole, false}, {theirs, true}} {
			region, err := m.d.Register(h.handle, r.mem, r.remote)
			if err != nil {
				return fmt.Errorf("the mailbox's %d bytes: %w", len(whole), err)
			}
			m.regions = append(m.regions, region)
			if lkeys[i] = region.LKey; r.remote {
				lkeys[i], rkeys[i] = m.regions[len(m.regions)-2].LKey, region.RKey
			}
		}
	}
	for _, w := range mine {
		m.hops[w.rank] = append(m.hops[w.rank], mailHop{wire: w, stripe: len(m.hops[w.rank]), lkey: lkeys[w.hca.index], rkey: rkeys[w.hca.index]})
	}
	return nil
}

// mailBytes is what goes round of an end besides wireBytes: the address and the key of the letters.
const mailBytes = 8 + 4

func (m *Mailbox) encode(mine []*wire) []byte {
	b := encodeWires(mine)
	at := make([]int, m.world) // mine is in the order of stripes
	for _, w := range mine {
		h := &m.hops[w.rank][at[w.rank]]
		at[w.rank]++
		b = binary.LittleEndian.AppendUint64(b, address(m.own.mem))
		b = binary.LittleEndian.AppendUint32(b, h.rkey)
	}
	return b
}

// meet takes what all ranks said, and connects.
func (m *Mailbox) meet(all []circuit, mine []*wire, said [][]byte) error {
	short := make([][]byte, len(said))
	for rank, b := range said {
		theirs := ours(all, rank)
		if n := len(theirs); len(b) != n*(wireBytes+mailBytes) {
			return fmt.Errorf("rank %d told of its mailbox in %d bytes; %d ends need %d", rank, len(b), n, n*(wireBytes+mailBytes))
		}
		short[rank] = b[:len(theirs)*wireBytes]
		letters, stripe := b[len(short[rank]):], 0
		for i, their := range theirs {
			if their.link.Rank[1-their.side] != m.rank {
				continue
			}
			h := &m.hops[rank][stripe]
			stripe++
			h.at, h.key = binary.LittleEndian.Uint64(letters[i*mailBytes:]), binary.LittleEndian.Uint32(letters[i*mailBytes+8:])
			if h.at+uint64(len(m.own.mem)) < h.at {
				return fmt.Errorf("rank %d says that its mailbox is at %#x", rank, h.at)
			}
		}
	}
	return m.wires.meet(all, mine, short)
}
