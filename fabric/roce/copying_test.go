package roce

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// copying is a Driver between ranks of one process whose requests are over when they are posted: what is left is what this package costs.
type copying struct {
	rank    int
	mem     [][]byte
	handles atomic.Uintptr
	done    []Completion
}

func (d *copying) String() string { return "copying" }
func (d *copying) Ports() ([]Port, error) {
	gid := [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 0, 14: 0, 15: byte(d.rank + 1)}
	return []Port{{Device: "copy0", Port: 1, Active: true, State: "active", Ethernet: true, MTU: 4096, GIDs: []GID{{Index: 1, Version: 2, Addr: gid, NetDev: "c0"}}}}, nil
}
func (d *copying) Open(string, int) (uintptr, error) { return d.handles.Add(1), nil }
func (d *copying) Alloc(n int) ([]byte, uintptr, error) {
	d.mem = append(d.mem, make([]byte, n+4096))
	m := d.mem[len(d.mem)-1]
	return m[-address(m)&4095:][:n], d.handles.Add(1), nil
}
func (d *copying) Register(uintptr, []byte, bool) (Region, error) {
	return Region{Handle: d.handles.Add(1)}, nil
}
func (d *copying) NewQP(uintptr, int, int, int, int) (QP, error) {
	h := d.handles.Add(1)
	return QP{Handle: h, Number: uint32(h), Inline: 64, InOrder: true}, nil
}
func (d *copying) Connect(uintptr, Connection) error { return nil }
func (d *copying) Post(qp uintptr, chain []Work) (int, error) {
	for i := range chain {
		w := &chain[i]
		to := uintptr(w.Remote)
		if w.Inline { // a word
			atomic.StoreUint64((*uint64)(at(to)), *(*uint64)(at(uintptr(w.Pieces[0].Addr))))
		} else {
			for _, p := range w.Pieces {
				copy(unsafe.Slice((*byte)(at(to)), p.Bytes), unsafe.Slice((*byte)(at(uintptr(p.Addr))), p.Bytes))
				to += uintptr(p.Bytes)
			}
		}
		if w.Signaled {
			d.done = append(d.done, Completion{ID: w.ID, QPN: uint32(qp)})
		}
	}
	return len(chain), nil
}

// at is memory that some rank's Alloc gave, or what a test keeps alive.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func (d *copying) PostReceives(uintptr, int) error { return nil }
func (d *copying) Poll(_ uintptr, into []Completion) (int, error) {
	n := copy(into, d.done)
	d.done = d.done[:copy(d.done, d.done[n:])]
	return n, nil
}
func (d *copying) Fail(uintptr) error { return nil }
func (d *copying) NextEvent(ctx context.Context, _ uintptr) (Event, error) {
	<-ctx.Done()
	return Event{}, ctx.Err()
}
func (d *copying) Close(uintptr) error { return nil }

func slash24(string) ([]netip.Prefix, error) {
	return []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24")}, nil
}

func openCopying(t testing.TB) []*Transport {
	t.Helper()
	ranks, meshes := make([]*Transport, 2), newMeshes(2)
	for r, err := range onAll(2, func(r int) (err error) {
		ranks[r], err = Open(t.Context(), meshes[r], &copying{rank: r}, Config{Yield: true, Addresses: slash24})
		return err
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	t.Cleanup(func() {
		for _, tr := range ranks {
			require.NoError(t, tr.Close())
		}
	})
	return ranks
}

func BenchmarkGather(b *testing.B) {
	ranks := openCopying(b)
	b.ReportAllocs()
	for r, err := range onAll(2, func(r int) error {
		c := fabric.New(ranks[r], fabric.Options{Timeout: time.Minute})
		in, out := make([]byte, 16), make([]byte, 32)
		for range b.N {
			if err := c.AllGather(out, in); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(b, err, "rank %d", r)
	}
}
