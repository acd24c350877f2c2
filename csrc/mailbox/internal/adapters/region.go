//go:build linux

package adapters

import (
	"sync/atomic"
	"unsafe"
)

// Where things lie in a region: struct hf_region of csrc/mailbox/region.h, and what is behind it.
const (
	Ranks         = 64
	Slots         = 2
	MaxStripes    = 8
	Pack          = 16
	ClassGroup    = 0
	ClassPair     = 1
	Classes       = 2
	FlagShift     = 39
	DoorbellBytes = 64
	DoorbellEpoch = 0
	DoorbellSize  = 8  // of slot 0; then that of slot 1
	DoorbellFlag  = 24 // alike
	DoorbellEnded = 40
	RecordAt      = 4096
	AbortAt       = 8192
	FlagsAt       = 12288
	HeadBytes     = 28672
	MailboxBytes  = 12352
	TargetsAt     = 64 // of the epoch of target 0, in a mailbox
	TargetBytes   = 192
)

// RecvAt is where a source's payload of a call of that class comes to lie.
func RecvAt(world, slotBytes, class, source, slot int) int {
	return HeadBytes + ((class*world+source)*Slots+slot)*slotBytes
}

// SendAt is where a target's payload lies until it is sent.
func SendAt(world, slotBytes, target, slot int) int {
	return RecvAt(world, slotBytes, Classes, target, slot)
}

// RegionBytes is how large a region is.
func RegionBytes(world, slotBytes int) int { return SendAt(world, slotBytes, world, 0) }

// FlagAt is the flag of a source's stripe.
func FlagAt(class, slot, source, stripe int) int {
	return FlagsAt + 8*(((class*Slots+slot)*Ranks+source)*MaxStripes+stripe)
}

// Class is that of a rank's calls to a target.
func Class(rank, target int) int {
	if rank == target {
		return ClassGroup
	}
	return ClassPair
}

// Stripe gives the bytes of a payload that a stripe carries: whole packs but for the payload's last, the first stripes one more.
func Stripe(bytes, stripes, stripe int) (from, to int) {
	packs := (bytes + Pack - 1) / Pack
	less, more := packs/stripes, packs%stripes
	from = Pack * (stripe*less + min(stripe, more))
	if to = from + Pack*less; stripe < more {
		to += Pack
	}
	return min(from, bytes), min(to, bytes)
}

// Word is the word at a place of memory that is not Go's.
func Word(mem []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[at])) }

// Load acquires a word that device or HCA writes.
func Load(mem []byte, at int) uint64 { return atomic.LoadUint64(Word(mem, at)) }

// Store releases one.
func Store(mem []byte, at int, v uint64) { atomic.StoreUint64(Word(mem, at), v) }
