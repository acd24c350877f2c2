package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// vectorOf uploads lengths as AllGatherVDevice takes them.
func vectorOf(s *stream, to Buffer, lengths []int) error {
	b := make([]byte, 0, 4*len(lengths))
	for _, n := range lengths {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(n)))
	}
	return s.Upload(to, b)
}

// testDeviceLengths gathers by lengths that are in device memory only once the calls have been queued.
func testDeviceLengths(t *testing.T, open Opener) {
	const stride, calls = 200, 24
	for world := 1; world <= 4; world++ {
		streams := openStreams(t, open, world, SubjectOptions{Group: "lengths", Timeout: valuesTimeout})
		lengths := func(call int) []int {
			l := make([]int, world)
			for r := range l {
				l[r] = [...]int{stride, 0, 1, 37, stride - 1}[(r+call)%5]
			}
			return l
		}
		together(t, world, time.Minute, func(rank int) error {
			s := streams[rank]
			release := func() {}
			if s.d.Hold != nil {
				var err error
				if release, err = s.d.Hold(); err != nil {
					return err
				}
			}
			defer release()
			var outs []*guarded
			for call := range calls {
				out, err := newGuarded(s, world*stride)
				if err != nil {
					return err
				}
				in, err := holding(s, noise(0, uint64(call*world+rank), stride))
				if err != nil {
					return err
				}
				vector, err := s.Alloc(4 * world)
				if err != nil {
					return err
				}
				late := s.d.Hold != nil
				if !late {
					err = vectorOf(s, vector, lengths(call))
				}
				at := place(out.Buffer).at
				if err := errors.Join(err, s.c.AllGatherVDevice(s.d.Stream, at, place(in.Buffer).at, stride, place(vector).at)); err != nil {
					return err
				}
				if late {
					if err := vectorOf(s, vector, lengths(call)); err != nil {
						return err
					}
				}
				outs = append(outs, out)
			}
			release()
			if err := s.Sync(); err != nil {
				return err
			}
			for call, out := range outs {
				got := make([]byte, world*stride)
				if err := errors.Join(s.Download(got, out.Buffer), out.intact()); err != nil {
					return err
				}
				for r, n := range lengths(call) {
					want := noise(0, uint64(call*world+r), stride)[:n]
					if err := differ(fmt.Sprintf("call %d, block %d", call, r), got[r*stride:][:n], want, 0, n); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// testWrongDeviceLengths finds vectors wrong when their streams reach them: ranks that differ, and an entry out of bounds.
func testWrongDeviceLengths(t *testing.T, open Opener) {
	const world, stride = 2, 64
	gatherBy := func(t *testing.T, lengths func(rank int) []int) ([]*stream, []error) {
		streams := openStreams(t, open, world, SubjectOptions{Group: "lengths", Timeout: valuesTimeout})
		return streams, gather(t, world, time.Minute, func(rank int) error {
			s := streams[rank]
			b, err := s.Alloc((world + 2) * stride)
			if err != nil {
				return err
			}
			at := place(b).at
			err = errors.Join(vectorOf(s, b.Slice(0, 4*world), lengths(rank)), s.c.AllGatherVDevice(s.d.Stream, at+2*stride, at+stride, stride, at))
			if err != nil {
				return err
			}
			return s.Sync()
		})
	}
	t.Run("differ", func(t *testing.T) {
		streams, errs := gatherBy(t, func(rank int) []int { return []int{8, 8 + rank} })
		_ = expectCause(t, subjectsOf(streams), errs, fabric.ErrDesync)
	})
	for _, n := range []int{-1, stride + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			streams, errs := gatherBy(t, func(int) []int { return []int{8, n} })
			cause := expectCause(t, subjectsOf(streams), errs, fabric.ErrAborted)
			if !strings.Contains(cause.Text, fmt.Sprintf("lengths[1] is %d", n)) {
				t.Errorf("the cause does not name the entry: %v", cause)
			}
		})
	}
}
