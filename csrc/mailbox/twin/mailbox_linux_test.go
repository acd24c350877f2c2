//go:build cgo

package twin_test

import (
	"encoding/binary"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/csrc/mailbox/internal/adapters"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const (
	world  = 3
	floats = 500
	slot   = 4096
)

// A member is a rank on a software device: its stream, its memory, and what an engine has around its calls.
type member struct {
	*gate
	rank                        int
	region                      *hipgo.HostBuffer
	mailbox, in, out            *hipgo.Buffer
	gather, allReduce, exchange hipgo.Function
}

// teach tells the software device of the mailbox's kernels.
func teach(t *testing.T, w *hiptest.World) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	so := filepath.Join(t.TempDir(), "twins.so")
	out, err := exec.CommandContext(t.Context(), cc, "-std=c11", "-O2", "-fPIC", "-shared", "-o", so, "../twin.c", "testdata/pause.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"hf_gather", "hf_all_reduce", "hf_exchange"} {
		require.NoError(t, w.Kernel(name, so, name+"__host", int(twin.RegionLayout()["hf_call"])))
	}
}

func openMailbox(t *testing.T, s hiptest.Settings) ([]*member, *adapters.Group) {
	w := hiptest.Start(t, s)
	teach(t, w)
	group := &adapters.Group{SlotBytes: slot, Stripes: 2, Broken: func(s string) { t.Error(s) }}
	var members []*member
	for r := range world {
		m := &member{gate: &gate{t: t, d: w.Device(0)}, rank: r}
		var err error
		m.s, err = m.d.NewStream(hipgo.StreamNonBlocking)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, m.s.Close()) })
		module, err := m.d.LoadModule(mailbox.Image)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, module.Close()) })
		for name, f := range map[string]*hipgo.Function{"hf_gather": &m.gather, "hf_all_reduce": &m.allReduce, "hf_exchange": &m.exchange} {
			*f, err = module.Function(name)
			require.NoError(t, err)
		}
		m.region, m.input, m.output = m.host(adapters.RegionBytes(world, slot)), m.host(4*floats), m.host(4*world*floats)
		m.mailbox, m.in, m.out = m.malloc(adapters.MailboxBytes), m.malloc(4*floats), m.malloc(4*world*floats)
		m.sync()
		members, group.Regions = append(members, m), append(group.Regions, m.region.Bytes())
	}
	return members, group
}

// args lays a struct hf_call out by the C compiler's own offsets.
func (m *member) args(target int, in uintptr) []byte {
	at := twin.RegionLayout()
	b := make([]byte, at["hf_call"])
	for name, v := range map[string]uint64{
		"mailbox": uint64(m.mailbox.Ptr()), "region": uint64(m.region.Ptr()), "in": uint64(in), "out": uint64(m.out.Ptr()), "bytes": 4 * floats,
		"slot_bytes": slot, "timeout": uint64(20 * time.Second),
	} {
		binary.NativeEndian.PutUint64(b[at["hf_call."+name]:], v)
	}
	for name, v := range map[string]int{"world": world, "rank": m.rank, "target": target, "stripes": 2, "dtype": int(fabric.F32), "reduce": int(fabric.Sum)} {
		binary.NativeEndian.PutUint32(b[at["hf_call."+name]:], uint32(v))
	}
	return b
}

// step queues an engine's step: its input comes; ranks 0 and 2 swap; all sum that; all gather what they brought; the results leave.
func (m *member) step() {
	one := func(n int) [3]int { return [3]int{n, 1, 1} }
	n := 4 * floats
	require.NoError(m.t, m.s.Copy(m.in.Ptr(), m.input.Ptr(), n, hipgo.CopyHostToDevice))
	require.NoError(m.t, m.s.Copy(m.out.Ptr(), m.in.Ptr(), n, hipgo.CopyDeviceToDevice))
	if m.rank != 1 {
		require.NoError(m.t, m.s.Launch(m.exchange, one(2), one(64), 0, m.args(2-m.rank, m.in.Ptr())))
	}
	require.NoError(m.t, m.s.Launch(m.allReduce, one(3), one(64), 0, m.args(m.rank, m.out.Ptr())))
	require.NoError(m.t, m.s.Copy(m.output.Ptr(), m.out.Ptr(), n, hipgo.CopyDeviceToHost))
	require.NoError(m.t, m.s.Launch(m.gather, one(1), one(32), 0, m.args(m.rank, m.in.Ptr())))
	require.NoError(m.t, m.s.Copy(m.output.Ptr()+uintptr(n), m.out.Ptr()+uintptr(n), 2*n, hipgo.CopyDeviceToHost))
}

func value(rank, lap, i int) float32 { return float32(rank*1000 + lap*7 + i) }

func (m *member) fill(lap int) {
	for i := range floats {
		binary.NativeEndian.PutUint32(m.input.Bytes()[4*i:], math.Float32bits(value(m.rank, lap, i)))
	}
}

func (m *member) check(lap int) {
	got := func(i int) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(m.output.Bytes()[4*i:])) }
	for i := range floats {
		require.Equal(m.t, value(0, lap, i)+value(1, lap, i)+value(2, lap, i), got(i), "rank %d, lap %d: sum of floats %d", m.rank, lap, i)
		require.Equal(m.t, value(1, lap, i), got(floats+i), "rank %d, lap %d: gathered float %d of rank 1", m.rank, lap, i)
		require.Equal(m.t, value(2, lap, i), got(2*floats+i), "rank %d, lap %d: gathered float %d of rank 2", m.rank, lap, i)
	}
}

// Three ranks of one device, each with a stream; a graph of each rank's step is launched again and again, and steps are queued
// between: epochs go on, of the group and of the pair.
func TestACapturedStepOfTheMailboxGoesOn(t *testing.T) {
	for name, integrated := range map[string]bool{"discrete": false, "integrated": true} {
		t.Run(name, func(t *testing.T) { captured(t, hiptest.Settings{Integrated: integrated}) })
	}
}

func captured(t *testing.T, s hiptest.Settings) {
	const laps = 40
	members, group := openMailbox(t, s)
	defer group.Start(uint64(laps))()
	var graphs []*hipgo.Exec
	for _, m := range members {
		require.NoError(t, m.s.BeginCapture(hipgo.CaptureRelaxed))
		m.step()
		graph, err := m.s.EndCapture()
		require.NoError(t, err)
		exec, err := graph.Instantiate()
		require.NoError(t, err)
		require.NoError(t, graph.Close())
		defer func() { assert.NoError(t, exec.Close()) }()
		graphs = append(graphs, exec)
	}
	for lap := range laps {
		for r, m := range members {
			m.fill(lap)
			if lap%5 == 0 {
				m.step()
			} else {
				require.NoError(t, graphs[r].Launch(m.s))
			}
		}
		for _, m := range members {
			m.sync()
			m.check(lap)
		}
	}
	for r := range members {
		assert.Zero(t, adapters.Load(group.Regions[r], adapters.RecordAt))
		assert.Equal(t, uint64(2*laps), adapters.Load(group.Regions[r], r*adapters.DoorbellBytes+adapters.DoorbellEnded), "rank %d", r)
	}
	assert.Equal(t, uint64(laps), adapters.Load(group.Regions[0], 2*adapters.DoorbellBytes+adapters.DoorbellEnded))
}
