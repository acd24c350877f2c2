package roce

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// The form of an advert, little-endian: its version; the number of settings, each a name and a value; the number of endpoints, each as
// appendEndpoint has it. A text is its length in a byte and its bytes.
const (
	advertVersion  = 1
	maxSettings    = 32
	maxSettingText = 64
	maxEndpoints   = maxPorts * maxPortAddresses
)

var errAdvert = errors.New("not an advert")

// advert is what each rank tells all others before there are queue pairs.
type advert struct {
	settings []setting
	ends     []endpoint
}

func (a *advert) encode() []byte {
	b := []byte{advertVersion, byte(len(a.settings))}
	for _, s := range a.settings {
		b = appendText(appendText(b, s.name), s.value)
	}
	b = append(b, byte(len(a.ends)))
	for i := range a.ends {
		b = appendEndpoint(b, &a.ends[i])
	}
	return b
}

func appendText(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func appendEndpoint(b []byte, e *endpoint) []byte {
	b = append(appendText(b, e.Device), byte(e.Port))
	b = append(binary.LittleEndian.AppendUint16(b, uint16(e.GIDIndex)), e.GID[:]...)
	b = binary.LittleEndian.AppendUint16(append(b, byte(e.Prefix)), uint16(e.MTU))
	return binary.LittleEndian.AppendUint64(b, uint64(e.Rate))
}

// decodeAdvert reads what a peer sent, of which nothing is believed: what it returns obeys choose's bounds.
func decodeAdvert(b []byte) (advert, error) {
	r := parser{b: b}
	var a advert
	if v := r.byte(); v != advertVersion || r.short {
		return a, fmt.Errorf("%w of version %d, but of %d: all ranks need one build", errAdvert, advertVersion, v)
	}
	for range r.count(maxSettings) {
		s := setting{r.text(maxSettingText), r.text(maxSettingText)}
		if !r.short && !nameable(s.name) {
			return advert{}, fmt.Errorf("%w: setting %q has no name of one", errAdvert, s.name)
		}
		a.settings = append(a.settings, s)
	}
	type gid struct {
		port string
		gid  [16]byte
	}
	seen, ports := map[gid]bool{}, map[string]bool{}
	for range r.count(maxEndpoints) {
		e := r.endpoint()
		if r.short {
			break
		}
		key := gid{e.name(), e.GID}
		if why := e.wrong(); why != "" || seen[key] {
			return advert{}, fmt.Errorf("%w: endpoint %q %s", errAdvert, e.Device, cmp.Or(why, "is there twice"))
		}
		seen[key], ports[key.port] = true, true
		a.ends = append(a.ends, e)
	}
	switch {
	case r.short:
		return advert{}, fmt.Errorf("%w: %d bytes are too few, or a count or length in them is too large", errAdvert, len(b))
	case len(r.b) > 0:
		return advert{}, fmt.Errorf("%w: %d bytes follow it", errAdvert, len(r.b))
	case len(ports) > maxPorts:
		return advert{}, fmt.Errorf("%w: it has %d ports; at most %d", errAdvert, len(ports), maxPorts)
	}
	return a, nil
}

// wrong says what cannot be of a decoded endpoint.
func (e *endpoint) wrong() string {
	switch {
	case !nameable(e.Device):
		return "has no name of a device"
	case e.Port < 1:
		return "has port 0"
	case worth(e.Addr()) == worthless:
		return "has no address of a host"
	case e.Prefix > e.Addr().BitLen():
		return fmt.Sprintf("has a prefix of %d bits", e.Prefix)
	case !validMTU(e.MTU):
		return fmt.Sprintf("has an MTU of %d bytes", e.MTU)
	case e.Rate < 0:
		return "has a negative rate"
	}
	return ""
}

// parser takes fields off bytes; after the first that is not there, all are zero. Their lengths are bounded before take has them.
type parser struct {
	b     []byte
	short bool
}

func (r *parser) take(n int) []byte {
	if r.short || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, n)
	}
	field := r.b[:n]
	r.b = r.b[n:]
	return field
}

func (r *parser) byte() byte { return r.take(1)[0] }

func (r *parser) count(most int) int {
	n := int(r.byte())
	if n > most {
		r.short = true
	}
	if r.short {
		return 0
	}
	return n
}

func (r *parser) text(most int) string { return string(r.take(r.count(most))) }

func (r *parser) endpoint() endpoint {
	e := endpoint{Device: r.text(maxDeviceName), Port: int(r.byte()), GIDIndex: int(binary.LittleEndian.Uint16(r.take(2)))}
	copy(e.GID[:], r.take(16))
	e.Prefix, e.MTU = int(r.byte()), int(binary.LittleEndian.Uint16(r.take(2)))
	e.Rate = int64(binary.LittleEndian.Uint64(r.take(8)))
	return e
}

// readAdverts decodes all ranks' blobs and holds their settings against rank 0's. Errors: ErrMismatch, the same on every rank that has the
// same blobs.
func readAdverts(blobs [][]byte) ([]advert, error) {
	all := make([]advert, len(blobs))
	for r, b := range blobs {
		var err error
		if all[r], err = decodeAdvert(b); err != nil {
			return nil, mismatch(r, fmt.Sprintf("rank %d sent what is %v", r, err))
		}
	}
	for r := range all {
		for i := range max(len(all[0].settings), len(all[r].settings)) {
			zero, other := settingAt(all[0].settings, i), settingAt(all[r].settings, i)
			switch {
			case zero.name != other.name:
				return nil, mismatch(r, fmt.Sprintf("rank 0 has a setting %s, rank %d %s; all ranks need one build", zero.name, r, other.name))
			case zero.value != other.value:
				return nil, mismatch(r, fmt.Sprintf("%s: rank 0 has %q, rank %d has %q; all ranks must have the same", zero.name, zero.value, r, other.value))
			}
		}
	}
	return all, nil
}

func settingAt(list []setting, i int) setting {
	if i < len(list) {
		return list[i]
	}
	return setting{name: "nothing"}
}

func mismatch(rank int, text string) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: rank, From: 0, Text: text}
}
