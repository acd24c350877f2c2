package roce

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// wire is a hop to be, and what the other end must know of it.
type wire struct {
	hop
	link     *link
	side     int // of the link's two ends, this rank's
	circuit  int
	terminal bool // a lane's; else a relay's
	psn      uint32
}

// ours lists this rank's ends of the circuits, in an order that every rank can tell.
func ours(all []circuit, rank int) []*wire {
	var mine []*wire
	for i := range all {
		for k := range all[i].Links {
			l := &all[i].Links[k]
			for side, r := range l.Rank {
				if r == rank {
					mine = append(mine, &wire{link: l, side: side, circuit: i, terminal: rank == all[i].A || rank == all[i].B})
				}
			}
		}
	}
	return mine
}

// wireBytes is what goes round of an end: the numbers of its queue pair and of its first packet, the address and the key of its share,
// and whether its device places in order what is written.
const wireBytes = 4 + 4 + 8 + 4 + 1

func encodeWires(wires []*wire) []byte {
	b := make([]byte, 0, len(wires)*wireBytes)
	for _, w := range wires {
		b = binary.LittleEndian.AppendUint32(b, w.qp.Number)
		b = binary.LittleEndian.AppendUint32(b, w.psn)
		b = binary.LittleEndian.AppendUint64(b, w.share.at)
		b = binary.LittleEndian.AppendUint32(b, w.share.rkey)
		ordered := byte(0)
		if w.qp.InOrder {
			ordered = 1
		}
		b = append(b, ordered)
	}
	return b
}

// geometry is that of the shares.
func (c *Config) geometry() geometry { return geometry{slots: c.Slots, payload: c.SlotBytes} }

// depth is the requests that a queue pair has room for: what all slots in flight need, twice, and words.
func (g geometry) depth() int { return 2*maxChain*g.slots + 16 }

// receives are what it keeps posted: more than frames and offers can be on their way.
func (g geometry) receives() int { return 2*g.slots + 2*offers }

// inline is the bytes of a word.
const inline = 8

// build opens the devices and makes memory and queue pairs. Relays have devices of their own, since another goroutine polls them.
func (t *Transport) build(all []circuit, mine []*wire) (relayed []*hca, err error) {
	if len(mine) == 0 {
		return nil, nil
	}
	g := t.c.geometry()
	byDevice := map[string]*hca{}
	open := func(list *[]*hca, kind string, w *wire) error {
		device := w.link.End[w.side].Device
		h := byDevice[kind+device]
		if h == nil {
			count := 0
			for _, o := range mine {
				if o.terminal == w.terminal && o.link.End[o.side].Device == device {
					count++
				}
			}
			var err error
			if h, err = openHCA(t.d, device, count*(g.depth()+maxChain+g.receives())); err != nil {
				return err
			}
			h.index = len(*list)
			*list = append(*list, h)
			byDevice[kind+device] = h
		}
		w.hca = h
		return nil
	}
	for _, w := range mine {
		if w.terminal {
			err = open(&t.hcas, "lane ", w)
		} else {
			err = open(&relayed, "relay ", w)
		}
		if err != nil {
			return relayed, err
		}
	}
	mem, handle, err := t.d.Alloc(len(mine) * g.shareBytes())
	if err != nil {
		return relayed, err
	}
	t.region = handle
	regions := map[*hca]Region{}
	for i, w := range mine {
		if _, there := regions[w.hca]; !there {
			if regions[w.hca], err = t.d.Register(w.hca.handle, mem, true); err != nil {
				return relayed, err
			}
		}
		from := i * g.shareBytes()
		if w.share, err = newShare(g, mem[from:][:g.shareBytes():g.shareBytes()], regions[w.hca]); err != nil {
			return relayed, err
		}
		if err := t.makeQP(w); err != nil {
			return relayed, err
		}
	}
	return relayed, nil
}

func (t *Transport) makeQP(w *wire) (err error) {
	g, here, there := t.c.geometry(), &w.link.End[w.side], &w.link.End[1-w.side]
	w.d, w.rank, w.depth = t.d, w.link.Rank[1-w.side], uint64(g.depth())
	w.name = fmt.Sprintf("%s:%d to %s:%d of rank %d", here.Device, here.Port, there.Device, there.Port, w.rank)
	if w.qp, err = t.d.NewQP(w.hca.handle, here.Port, g.depth()+maxChain, g.receives(), inline); err != nil {
		return fmt.Errorf("a queue pair on %s: %w", w.name, err)
	}
	if w.qp.Inline < inline {
		return fabric.Unsupportedf("%s takes inline requests of %d bytes; %d are needed", here.Device, w.qp.Inline, inline)
	}
	var psn [4]byte
	if _, err := rand.Read(psn[:]); err != nil {
		return err
	}
	w.psn = binary.LittleEndian.Uint32(psn[:]) & (1<<24 - 1)
	w.hca.ends[w.qp.Number] = &w.hop
	return nil
}

// meet takes what all ranks said of their ends, and connects this rank's.
func (t *Transport) meet(all []circuit, mine []*wire, said [][]byte) error {
	g := t.c.geometry()
	for rank, blob := range said {
		theirs := ours(all, rank)
		if len(blob) != len(theirs)*wireBytes {
			return fmt.Errorf("rank %d told of its queue pairs in %d bytes; %d ends need %d", rank, len(blob), len(theirs), len(theirs)*wireBytes)
		}
		for i, their := range theirs {
			if their.link.Rank[1-their.side] != t.rank {
				continue
			}
			b := blob[i*wireBytes:]
			for _, w := range mine {
				if w.link != their.link || w.side == their.side {
					continue
				}
				w.immediate = t.c.Order == OrderImmediate || t.c.Order == OrderAuto && (!w.qp.InOrder || b[20] != 1)
				w.far, w.farKey = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])
				if w.far+uint64(g.shareBytes()) < w.far {
					return fmt.Errorf("rank %d says that its share of %s is at %#x", rank, w.name, w.far)
				}
				to := &w.link.End[1-w.side]
				err := t.d.Connect(w.qp.Handle, Connection{Port: w.link.End[w.side].Port, GIDIndex: w.link.End[w.side].GIDIndex, MTU: w.link.MTU, PSN: w.psn,
					PeerQPN: binary.LittleEndian.Uint32(b), PeerPSN: binary.LittleEndian.Uint32(b[4:]), PeerGID: to.GID,
					Timeout: t.c.PacketTimeout, Retries: t.c.Retries, TrafficClass: t.c.TrafficClass})
				if err != nil {
					return fmt.Errorf("connecting %s: %w", w.name, err)
				}
				if err := t.d.PostReceives(w.qp.Handle, g.receives()); err != nil {
					return fmt.Errorf("receives of %s: %w", w.name, err)
				}
			}
		}
	}
	return nil
}

// join makes lanes of this rank's ends, and relays of those that are of others' circuits.
func (t *Transport) join(all []circuit, mine []*wire) {
	through := map[int][]*hop{}
	for _, w := range mine {
		c := &all[w.circuit]
		if !w.terminal {
			through[w.circuit] = append(through[w.circuit], &w.hop)
			continue
		}
		l := &lane{hop: &w.hop, peer: c.A + c.B - t.rank, relay: c.Via >= 0}
		if l.relay {
			l.name += fmt.Sprintf(", on the way to rank %d", l.peer)
		}
		f := &t.peers[l.peer]
		l.index = len(f.lanes)
		f.lanes = append(f.lanes, l)
		if !l.relay && f.near == nil {
			f.near = l
		}
		t.told = t.told || w.immediate
	}
	for _, h := range through {
		t.relays.add(h[0], h[1])
	}
}
