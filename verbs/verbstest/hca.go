package verbstest

import (
	"fmt"
	"math/rand/v2"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// HCA is a RoCE device with one port.
type HCA struct {
	f        *Fabric
	host     *Host
	index    int
	name     string
	net      *network
	netIndex int

	gids   []driver.GID // in the table's order
	pkeys  []uint16
	mtu    uint32 // enum ibv_mtu: the active one
	down   bool
	mute   bool
	dead   bool // after Fatal
	locals bool // a downed port fails work at once
	tamper func(imm, bytes uint32) (uint32, uint32)

	contexts []*device
	qps      map[uint32]*qp
	keys     map[uint32]*mr
	relaxed  int // MRs with relaxed ordering
	made     uint64
	numbers  uint32
	rng      *rand.Rand
}

const gidSlots = 16

func newHCA(f *Fabric, host *Host, i int) *HCA {
	h := &HCA{
		f: f, host: host, index: i, name: fmt.Sprintf("mem%d", i), pkeys: []uint16{0xffff}, mtu: 5,
		qps: map[uint32]*qp{}, keys: map[uint32]*mr{}, rng: rand.New(rand.NewPCG(f.seed, uint64(host.index)<<8|uint64(i)+1)),
	}
	h.numbers = 0x100 + h.rng.Uint32N(1<<20)
	return h
}

func (h *HCA) guid() uint64 {
	return 0x02_5e_00_ff_fe_00_00_00 | uint64(h.host.index)<<8 | uint64(h.index)
}

// Name is the device's: mem0, mem1, ... on each host.
func (h *HCA) Name() string { return h.name }

// NetDev is the network interface that its GIDs name: ethmem0. No such interface is in the system; Addr has its address.
func (h *HCA) NetDev() string { return "eth" + h.name }

// Link takes the port down, or up again: the device's contexts hear of it, and the port's state says so. Work on its way waits out
// its retries. The other end of a cable goes down and up with it; a switch's other ports do not.
func (h *HCA) Link(up bool) {
	h.f.set(func() {
		ends := []*HCA{h}
		if h.net != nil && h.net.cable {
			ends = h.net.hcas
		}
		for _, e := range ends {
			e.link(up)
		}
	})
}

func (h *HCA) link(up bool) {
	if h.down == !up {
		return
	}
	h.down = !up
	if up {
		h.event(eventPortActive)
		return
	}
	h.event(eventPortError)
	if h.locals {
		for _, q := range h.ordered() {
			if q.state == stateRTS && len(q.sq) > 0 {
				q.fail(statusLocalOperation)
			}
		}
	}
}

// FailLocally has a port that goes down fail the work on its way at once, and what is posted later, as local QP operation errors:
// rxe does so. Without it, as on real HCAs, retries are waited out.
func (h *HCA) FailLocally(on bool) { h.f.set(func() { h.locals = on }) }

// Mute loses all that the port sends and is sent, though it stays up.
func (h *HCA) Mute(on bool) { h.f.set(func() { h.mute = on }) }

// MTU sets the port's active MTU, in bytes of payload: 256, 512, 1024, 2048, or 4096, which it is at first.
func (h *HCA) MTU(bytes int) error {
	for code := uint32(1); code <= 5; code++ {
		if mtuBytes(code) == bytes {
			h.f.set(func() { h.mtu = code })
			return nil
		}
	}
	return fmt.Errorf("verbstest: an MTU of %d bytes: 256, 512, 1024, 2048 or 4096", bytes)
}

// WireMTU has the switch or cable that the port is plugged into lose packets of more bytes of payload, and say nothing.
func (h *HCA) WireMTU(bytes int) {
	h.f.set(func() {
		if h.net != nil {
			h.net.mtu = bytes
		}
	})
}

func mtuBytes(code uint32) int { return 128 << code }

// PKeys sets the port's table of partition keys, and tells contexts: at first it has 0xffff alone.
func (h *HCA) PKeys(keys ...uint16) {
	h.f.set(func() {
		h.pkeys = append([]uint16(nil), keys...)
		h.event(eventPKeyChange)
	})
}

// Tamper rewrites the immediate and the byte count of every receive that completes here, as a hostile or broken peer would have
// them; nil ends that. It is called under the fabric's lock: it must not call into the fabric.
func (h *HCA) Tamper(rewrite func(imm, bytes uint32) (uint32, uint32)) {
	h.f.set(func() { h.tamper = rewrite })
}

// Fatal breaks the device: its contexts hear of it, its queue pairs go to ERR, its calls give EIO, but for those that destroy.
func (h *HCA) Fatal() {
	h.f.set(func() {
		h.dead = true
		h.event(eventDeviceFatal)
		for _, q := range h.ordered() {
			q.stop()
		}
	})
}
