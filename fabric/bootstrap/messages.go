package bootstrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	maxText    = 512 // bytes of a cause's or a vote's text
	maxDevice  = 64  // bytes of an interface's name
	maxRecords = 8   // calls of a rank that travel after a verdict
	nobody     = 0xffff
)

// writer appends little-endian fields.
type writer []byte

func (w *writer) u8(v uint8) { *w = append(*w, v) }
func (w *writer) flag(v bool) {
	if v {
		w.u8(1)
		return
	}
	w.u8(0)
}
func (w *writer) u16(v uint16) { *w = binary.LittleEndian.AppendUint16(*w, v) }
func (w *writer) u32(v uint32) { *w = binary.LittleEndian.AppendUint32(*w, v) }
func (w *writer) u64(v uint64) { *w = binary.LittleEndian.AppendUint64(*w, v) }
func (w *writer) rank(r int)   { w.u16(uint16(r)) } // -1 travels as nobody
func (w *writer) addr(a netip.Addr) {
	b := a.Unmap().AsSlice()
	w.u8(uint8(len(b)))
	*w = append(*w, b...)
}
func (w *writer) text(s string) {
	w.u16(uint16(len(s)))
	*w = append(*w, s...)
}

// reader takes them back; after the first that is not there all are zero and end says so.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// flag refuses anything but 0 and 1.
func (r *reader) flag() bool {
	v := r.u8()
	if v > 1 {
		r.bad = true
	}
	return v == 1
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) rank() int {
	if v := r.u16(); v != nobody {
		return int(v)
	}
	return -1
}

// text refuses more than most bytes.
func (r *reader) text(most int) string {
	n := int(r.u16())
	if n > most {
		r.bad = true
	}
	return string(r.take(n))
}

// count refuses more than most of what follows.
func (r *reader) count(most int) int {
	n := int(r.u8())
	if n > most {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return n
}

// addr takes a length of 4 or 16 and as many bytes; length 0 is no address.
func (r *reader) addr() netip.Addr {
	n := int(r.u8())
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(r.take(n))
	if !ok || a.Is4In6() {
		r.bad = true
	}
	return a
}

func (r *reader) rest() []byte { return r.take(len(r.b)) }

func (r *reader) end(what string) error {
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%w: a malformed %s", errFrame, what)
	}
	return nil
}

// place is where a rank lives.
type place struct {
	host   string
	boot   uint64     // hash of what is one per running kernel
	net    uint64     // hash of what is one per network namespace
	from   netip.Addr // its end of its way to rank 0; invalid for rank 0
	met    netip.Addr // rank 0's end of that
	listen []address
}

// address is one that a rank advertises. Zones do not travel: they mean something only where they were written.
type address struct {
	at     netip.AddrPort // port 0 where the rank listens on nothing
	bits   int            // of its subnet's prefix; 0 when not known
	device string         // its interface; "" when not known
	cable  bool           // it is reached over its own interface alone
	chosen bool           // the rank's Rails allow it
}

func (w *writer) place(p *place) {
	w.text(p.host)
	w.u64(p.boot)
	w.u64(p.net)
	w.addr(p.from)
	w.addr(p.met)
	w.u8(uint8(len(p.listen)))
	for _, a := range p.listen {
		w.addr(a.at.Addr())
		w.u16(a.at.Port())
		w.u8(uint8(a.bits))
		w.text(a.device)
		w.flag(a.cable)
		w.flag(a.chosen)
	}
}

func (r *reader) place() place {
	p := place{host: r.text(maxValue), boot: r.u64(), net: r.u64(), from: r.addr(), met: r.addr()}
	for range r.count(maxListen) {
		a := address{at: netip.AddrPortFrom(r.addr(), r.u16()), bits: int(r.u8()), device: r.text(maxDevice), cable: r.flag(), chosen: r.flag()}
		if !a.at.IsValid() || a.bits > a.at.Addr().BitLen() {
			r.bad = true
		}
		p.listen = append(p.listen, a)
	}
	return p
}

// joining is a dialer's first frame.
type joining struct {
	world    int
	group    string
	settings []Setting
	place    place
}

func (j *joining) encode() []byte {
	var w writer
	w.u16(uint16(j.world))
	w.text(j.group)
	w.place(&j.place)
	return append(w, encodeSettings(j.settings)...)
}

func decodeJoining(b []byte) (joining, error) {
	r := reader{b: b}
	j := joining{world: int(r.u16()), group: r.text(maxName), place: r.place()}
	settings, err := decodeSettings(r.rest())
	j.settings = settings
	return j, errors.Join(err, r.end("join"))
}

func encodeSettings(settings []Setting) []byte {
	var w writer
	w.u8(uint8(len(settings)))
	for _, s := range settings {
		w.text(s.Name)
		w.text(s.Value)
	}
	return w
}

func decodeSettings(b []byte) ([]Setting, error) {
	r := reader{b: b}
	var settings []Setting
	for range r.count(2 * maxSettings) {
		settings = append(settings, Setting{r.text(maxName), r.text(maxValue)})
	}
	return settings, r.end("list of settings")
}

func encodePlaces(places []place) []byte {
	var w writer
	w.u8(uint8(len(places)))
	for i := range places {
		w.place(&places[i])
	}
	return w
}

func decodePlaces(b []byte) ([]place, error) {
	r := reader{b: b}
	var places []place
	for range r.count(fabric.MaxWorld) {
		places = append(places, r.place())
	}
	return places, r.end("table of ranks")
}

// kinds are the sentinels as they travel: a value is an index here, and never changes.
var kinds = [...]error{1: fabric.ErrInvalid, 2: fabric.ErrUnsupported, 3: fabric.ErrMismatch, 4: fabric.ErrDesync,
	5: fabric.ErrPeerFailed, 6: fabric.ErrTimeout, 7: fabric.ErrAborted, 8: fabric.ErrUnauthorized, 9: fabric.ErrClosed,
	10: fabric.ErrDevice, 11: fabric.ErrCapture}

const (
	kindAborted = 7
	kindCapture = 11
)

// kindOf gives err's kind; one that none of the sentinels is in counts as an abort.
func kindOf(err error) uint8 {
	if errors.Is(err, kinds[kindCapture]) {
		return kindCapture // it is an ErrUnsupported too
	}
	for k := 1; k < len(kinds); k++ {
		if errors.Is(err, kinds[k]) {
			return uint8(k)
		}
	}
	return kindAborted
}

func (r *reader) kind() error {
	k := int(r.u8())
	if k == 0 || k >= len(kinds) {
		r.bad = true
		k = kindAborted
	}
	return kinds[k]
}

func encodeCause(c *fabric.Cause) []byte {
	var w writer
	w.u8(kindOf(c.Kind))
	w.rank(c.Peer)
	w.rank(c.From)
	w.u32(c.Part)
	w.text(clip(c.Text))
	w.text(c.Group[:min(len(c.Group), maxName)])
	return w
}

func decodeCause(b []byte) (*fabric.Cause, error) {
	r := reader{b: b}
	c := &fabric.Cause{Kind: r.kind(), Peer: r.rank(), From: r.rank(), Part: r.u32(), Text: r.text(maxText), Group: r.text(maxName)}
	return c, r.end("cause")
}

// clip bounds a text to what travels, at the start of a character.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func encodeProgress(p fabric.Progress) []byte {
	var w writer
	w.flag(p.Running)
	w.u8(uint8(p.Op))
	w.u8(uint8(p.Class))
	w.u64(p.Seq)
	w.u64(uint64(p.Bytes))
	w.rank(p.Peer)
	w.u64(uint64(p.Age))
	w.u64(p.Waiting)
	w.u64(p.Calls)
	w.u64(p.GroupSeq)
	w.text(p.Group[:min(len(p.Group), maxName)])
	return w
}

func decodeProgress(b []byte) (fabric.Progress, error) {
	r := reader{b: b}
	p := r.progress()
	return p, r.end("beat")
}

func (r *reader) progress() fabric.Progress {
	return fabric.Progress{Running: r.flag(), Op: fabric.Op(r.u8()), Class: fabric.Class(r.u8()), Seq: r.u64(), Bytes: int(r.u64()), Peer: r.rank(),
		Age: time.Duration(r.u64()), Waiting: r.u64(), Calls: r.u64(), GroupSeq: r.u64(), Group: r.text(maxName)}
}

// encodeRecords keeps the last few.
func encodeRecords(records []fabric.Record) []byte {
	records = records[max(0, len(records)-maxRecords):]
	var w writer
	w.u8(uint8(len(records)))
	for _, r := range records {
		w.u64(r.Seq)
		w.u8(uint8(r.Op))
		w.u64(uint64(r.Bytes))
		w.rank(r.Peer)
		w.u8(uint8(r.DType))
		w.u8(uint8(r.Reduce))
		w.u64(r.Hash)
		w.u8(uint8(r.State))
		w.u64(uint64(r.Begun.UnixNano()))
		w.u64(uint64(r.Queued))
		w.u64(uint64(r.Took))
	}
	return w
}

func decodeRecords(b []byte) ([]fabric.Record, error) {
	r := reader{b: b}
	var records []fabric.Record
	for range r.count(maxRecords) {
		records = append(records, fabric.Record{Seq: r.u64(), Op: fabric.Op(r.u8()), Bytes: int(r.u64()), Peer: r.rank(),
			DType: fabric.DType(r.u8()), Reduce: fabric.ReduceOp(r.u8()), Hash: r.u64(), State: fabric.State(r.u8()), Begun: time.Unix(0, int64(r.u64())), Queued: time.Duration(r.u64()), Took: time.Duration(r.u64())})
	}
	return records, r.end("list of records")
}
