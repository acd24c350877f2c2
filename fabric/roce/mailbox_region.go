package roce

import (
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
)

// Where things lie in a mailbox's region: docs/mailbox.md. Device, proxy and HCAs share it.
const (
	mailSlots  = 2
	mailPack   = 16 // bytes that are not cut
	classGroup = 0
	classPair  = 1
	classes    = 2

	bellBytes  = 64 // a target's doorbell
	bellEpoch  = 0
	bellSizes  = 8  // of slot 0, then that of slot 1
	bellFlags  = 24 // alike
	bellEnded  = 40
	recordAt   = 4096
	abortAt    = 8192
	mailFlags  = 12288
	mailHead   = 28672
	mailboxLen = 12352 // of the kernels' device memory
	pageBytes  = 4096

	recordFailed  = recordAt
	recordTarget  = recordAt + 8
	recordPeer    = recordAt + 16
	recordStripe  = recordAt + 24
	recordSeen    = recordAt + 32
	recordAwaited = recordAt + 40
	recordMicros  = recordAt + 48

	flagShift = 39
	flagEpoch = 1<<flagShift - 1

	failureShift = 56
	failureMask  = 1<<6 - 1
	failureEpoch = 1<<failureShift - 1
	causeAbort   = 1
	causeTimeout = 2
	causeDesync  = 3
)

// letters is a rank's region.
type letters struct {
	mem                    []byte
	words                  []uint64 // the same
	device                 uintptr
	world, rank, slotBytes int
}

func newLetters(mem []byte, device uintptr, world, rank, slotBytes int) (letters, error) {
	words, err := fabric.Words(mem)
	return letters{mem, words, device, world, rank, slotBytes}, err
}

func lettersBytes(world, slotBytes int) int {
	l := letters{world: world, slotBytes: slotBytes}
	return l.sendAt(world, 0)
}

// recvAt is where a source's payload of a call of that class comes to lie.
func (l *letters) recvAt(class, source, slot int) int {
	return mailHead + ((class*l.world+source)*mailSlots+slot)*l.slotBytes
}

// sendAt is where a target's payload lies until it is sent.
func (l *letters) sendAt(target, slot int) int { return l.recvAt(classes, target, slot) }

// mailFlagAt is the flag of a source's stripe.
func mailFlagAt(class, slot, source, stripe int) int {
	return mailFlags + 8*(((class*mailSlots+slot)*fabric.MaxWorld+source)*MaxStripes+stripe)
}

// load acquires a word that device or HCA writes, and store releases one.
func (l *letters) load(at int) uint64     { return atomic.LoadUint64(&l.words[at/8]) }
func (l *letters) store(at int, v uint64) { atomic.StoreUint64(&l.words[at/8], v) }

func (l *letters) bell(target, field int) uint64 { return l.load(target*bellBytes + field) }

// classOf is that of this rank's calls to a target: the group's number is the rank's own.
func (l *letters) classOf(target int) int {
	if target == l.rank {
		return classGroup
	}
	return classPair
}

// share of a payload that a stripe carries: whole packs but for the payload's last, the first stripes one more.
func stripeOf(bytes, stripes, stripe int) (from, to int) {
	packs := (bytes + mailPack - 1) / mailPack
	less, more := packs/stripes, packs%stripes
	from = mailPack * (stripe*less + min(stripe, more))
	if to = from + mailPack*less; stripe < more {
		to += mailPack
	}
	return min(from, bytes), min(to, bytes)
}
