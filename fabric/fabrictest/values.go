package fabrictest

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// valuesTimeout is far more than any step takes on a busy machine.
const valuesTimeout = 20 * time.Second

// testValues runs cases, a world at a time, each opened once.
func testValues(t *testing.T, open Opener, cases []valueCase) {
	src := &source{}
	for world := 1; world <= maxWorld; world++ {
		t.Run(fmt.Sprintf("world=%d", world), func(t *testing.T) {
			subjects := openWorld(t, open, world, SubjectOptions{Group: "values", Timeout: valuesTimeout})
			var work []*job
			for _, c := range cases {
				if c.world == world {
					work = append(work, &job{valueCase: c, src: src})
				}
			}
			failed := atomic.Bool{}
			together(t, world, 5*time.Minute, func(rank int) error {
				b, err := newBench(subjects[rank])
				for i := 0; err == nil && i < len(work) && !failed.Load(); i++ {
					if err = b.run(work[i]); err != nil {
						failed.Store(true)
						err = fmt.Errorf("%v: %w", work[i], err)
						subjects[rank].Abort(err)
					}
				}
				return err
			})
		})
	}
}

// job is a case whose shares are computed once, by the first rank to come, and dropped by the last.
type job struct {
	valueCase
	src  *source
	once sync.Once
	all  []share
	used atomic.Int32
}

func (j *job) share(rank int) share {
	j.once.Do(func() { j.all = j.shares(j.src) })
	s := j.all[rank]
	if int(j.used.Add(1)) == j.world {
		j.all = nil
	}
	return s
}

// guardBytes lie on both sides of every out.
const guardBytes = 64

// bench is one rank's memory for all cases: an out between guards, and an in.
type bench struct {
	s       Subject
	in, out Buffer
	image   []byte // of out and its guards
	got     []byte
}

func newBench(s Subject) (*bench, error) {
	b := &bench{s: s, image: make([]byte, benchBytes), got: make([]byte, benchBytes)}
	var err error
	if b.in, err = s.Alloc(benchBytes); err != nil {
		return nil, err
	}
	b.out, err = s.Alloc(benchBytes)
	return b, err
}

const benchBytes = maxWorld*(3*PartBytes+2) + 2*guardBytes + 8

// run makes one rank's call of a case and compares all that it may and may not have written, bit for bit.
func (b *bench) run(j *job) error {
	share := j.share(b.s.Rank())
	if share.idle {
		return nil
	}
	inAt, outAt := guardBytes, guardBytes
	if j.unaligned {
		inAt, outAt = inAt+1, outAt+3
	}
	end := outAt + len(share.want)
	image := b.image[:end+guardBytes]
	for i := range image {
		image[i] = j.fill()
	}
	call := share.call
	if share.at >= 0 {
		copy(image[outAt+share.at:], share.in)
	}
	if err := b.s.Upload(b.out.Slice(0, len(image)), image); err != nil {
		return err
	}
	if share.want != nil {
		call.Out = b.out.Slice(outAt, end)
	}
	if share.in != nil {
		call.In = b.in.Slice(inAt, inAt+len(share.in))
		if share.at >= 0 {
			call.In = call.Out.Slice(share.at, share.at+len(share.in))
		}
	}
	if share.at < 0 && share.in != nil {
		if err := b.s.Upload(call.In, share.in); err != nil {
			return err
		}
	}
	if err := makeCall(b.s, call); err != nil {
		return err
	}
	return b.compare(j, share, call, image, outAt)
}

func (b *bench) compare(j *job, share share, call Call, image []byte, outAt int) error {
	if !j.op.Reduces() || !j.dtype.Float() || b.s.Ordered() {
		copy(image[outAt:], share.want)
	} else if err := b.s.Download(image[outAt:outAt+len(share.want)], call.Out); err != nil {
		return err
	}
	got := b.got[:len(image)]
	if err := b.s.Download(got, b.out.Slice(0, len(image))); err != nil {
		return err
	}
	if err := differ("out", got, image, outAt, len(share.want)); err != nil {
		return err
	}
	if share.at >= 0 || share.in == nil {
		return nil
	}
	in := b.got[:len(share.in)]
	if err := b.s.Download(in, call.In); err != nil {
		return err
	}
	return differ("in", in, share.in, 0, len(in))
}

func differ(what string, got, want []byte, at, n int) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			where := ""
			if i < at || i >= at+n {
				where = ", outside of it"
			}
			return fmt.Errorf("%s of %d bytes: byte %d is %#02x, not %#02x%s", what, n, i-at, got[i], want[i], where)
		}
	}
	return nil
}

// makeCall makes a call and waits for its end, whatever kind of path it is.
func makeCall(s Subject, c Call) error {
	if err := s.Do(c); err != nil {
		return err
	}
	return s.Sync()
}

// testBarrier holds Barrier to its meaning: nobody leaves before all have come.
func testBarrier(t *testing.T, open Opener) {
	const rounds = 20
	for world := 1; world <= maxWorld; world++ {
		subjects := openWorld(t, open, world, SubjectOptions{Group: "barrier", Timeout: valuesTimeout})
		var entered atomic.Int32
		together(t, world, time.Minute, func(rank int) error {
			for i := range rounds {
				entered.Add(1)
				if err := makeCall(subjects[rank], Call{Op: fabric.Barrier}); err != nil {
					return err
				}
				if n := int(entered.Load()); n < (i+1)*world {
					return fmt.Errorf("world %d left barrier %d after %d of %d had entered", world, i, n, (i+1)*world)
				}
			}
			return nil
		})
	}
}
