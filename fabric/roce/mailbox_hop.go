package roce

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// mailHop is this rank's end of a stripe to a peer, or of one that it relays.
type mailHop struct {
	*wire
	peer    int // that it leads to; of a relay: at the other end
	stripe  int
	relayed bool     // another rank passes on what goes by it
	way     *mailWay // that it begins, of a relay
	lkey    uint32   // of the letters, for its HCA
	near    uint64   // address of what the other end writes into: the letters, or a buffer
	rkey    uint32   // of that
	at      uint64   // what this end writes into, likewise
	key     uint32
	arrived [classes]uint64 // calls of the peer's that completions have told of
	noted   uint64          // notes likewise
	notes   uint64          // that were sent; the last of them is over with that request
	noteEnd uint64
	heeded  uint64 // notes of the peer's that were read
	count   counters
}

// letter is a request for a piece that goes to a place in the peer's letters, or in what is relayed.
func (h *mailHop) letter(at int, p Piece) Work {
	return Work{Pieces: [2]Piece{p}, Remote: h.at + uint64(at), RKey: h.key}
}

// word is one that stores v there. Of a chain two may be, of another number each.
func (h *mailHop) word(at int, v uint64, number int) Work {
	from := wordAt + 8*number
	h.share.words[from/8] = v
	w := h.letter(at, h.share.piece(from, 8))
	w.Inline = true
	return w
}

// stripesOf gives every pair as many circuits as the pair with most has, since the kernels count one number of stripes: some rails carry
// several then.
func stripesOf(all []circuit) (striped []circuit, stripes int) {
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
	return striped, stripes
}

// build opens devices, makes queue pairs, and has the devices know the letters. Peers may write flags and what comes behind them.
func (m *Mailbox) build(all []circuit, mine []*wire) (err error) {
	if m.relayHCAs, err = m.wires.build(all, mine); err != nil {
		return err
	}
	near, err := m.register(m.wires.hcas, m.own.mem, false)
	if err != nil {
		return err
	}
	far, err := m.register(m.wires.hcas, m.own.mem[mailFlags:m.own.sendAt(0, 0)], true)
	if err != nil {
		return err
	}
	m.ends = make([]mailHop, len(mine))
	for i, w := range mine {
		h := &m.ends[i]
		if *h = (mailHop{wire: w, peer: w.rank}); !w.terminal {
			if err := m.openWay(h); err != nil {
				return err
			}
			continue
		}
		c := &all[w.circuit]
		h.peer, h.relayed = c.A+c.B-m.rank, c.Via >= 0
		h.near, h.lkey, h.rkey = address(m.own.mem), near[w.hca.index].LKey, far[w.hca.index].RKey
		if h.relayed {
			h.name += fmt.Sprintf(", on the way to rank %d", h.peer)
		}
		h.stripe = len(m.hops[h.peer])
		m.hops[h.peer] = append(m.hops[h.peer], h)
	}
	m.joinWays(all)
	return nil
}

// register tells HCAs of memory; by their index it gives what they call it.
func (m *Mailbox) register(hcas []*hca, mem []byte, remote bool) (regions []Region, err error) {
	for _, h := range hcas {
		region, err := m.d.Register(h.handle, mem, remote)
		if err != nil {
			return nil, fmt.Errorf("the mailbox's %d bytes: %w", len(mem), err)
		}
		regions, m.regions = append(regions, region), append(m.regions, region)
	}
	return regions, nil
}

// mailBytes is what goes round of an end besides wireBytes: the address and the key of where the other end writes.
const mailBytes = 8 + 4

func (m *Mailbox) encode(mine []*wire) []byte {
	b := encodeWires(mine)
	for i := range m.ends {
		b = binary.LittleEndian.AppendUint64(b, m.ends[i].near)
		b = binary.LittleEndian.AppendUint32(b, m.ends[i].rkey)
	}
	return b
}

// meet takes what all ranks said, and connects.
func (m *Mailbox) meet(all []circuit, mine []*wire, said [][]byte) error {
	short, ends := make([][]byte, len(said)), map[*link]*mailHop{}
	for i := range m.ends {
		ends[m.ends[i].link] = &m.ends[i]
	}
	for rank, b := range said {
		theirs := ours(all, rank)
		if n := len(theirs); len(b) != n*(wireBytes+mailBytes) {
			return fmt.Errorf("rank %d told of its mailbox in %d bytes; %d ends need %d", rank, len(b), n, n*(wireBytes+mailBytes))
		}
		short[rank] = b[:len(theirs)*wireBytes]
		letters := b[len(short[rank]):]
		for i, their := range theirs {
			h := ends[their.link]
			if h == nil || their.link.Rank[1-their.side] != m.rank {
				continue
			}
			h.at, h.key = binary.LittleEndian.Uint64(letters[i*mailBytes:]), binary.LittleEndian.Uint32(letters[i*mailBytes+8:])
			if h.at+uint64(len(m.own.mem)) < h.at {
				return fmt.Errorf("rank %d says that its mailbox is at %#x", rank, h.at)
			}
		}
	}
	return m.wires.meet(all, mine, short)
}
