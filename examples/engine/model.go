package main

import (
	"fmt"
	"math"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const layers, dim, hidden, vocab = 4, 128, 256, 512

// model is one rank's share of a stack of blocks. A block is split by columns, then by rows, and ends in one sum over the
// ranks; the logits are split by columns and gathered.
type model struct {
	host        *fabric.Collective
	bf16        bool // the type of the weights and of what is summed
	integers    bool // small ones make every sum exact, so that tokens are equal at any world
	embed, head []float32
	up, down    [layers][]float32
	wire        []uint16      // a batch in bf16
	collective  time.Duration // spent in calls
}

func newModel(host *fabric.Collective, bf16, integers bool) (*model, error) {
	rank, world := host.Rank(), host.World()
	if hidden%world != 0 || vocab%world != 0 {
		return nil, fmt.Errorf("world %d does not divide hidden %d and vocab %d", world, hidden, vocab)
	}
	m := &model{host: host, bf16: bf16, integers: integers}
	h, v := hidden/world, vocab/world
	m.embed = m.draw(0, vocab, dim, 0, 0, 1)
	for l := range layers {
		m.up[l] = m.draw(1+2*l, h, dim, rank*h, 0, dim)
		m.down[l] = m.draw(2+2*l, dim, h, 0, rank*h, hidden)
	}
	m.head = m.draw(1+2*layers, v, dim, rank*v, 0, dim)
	return m, nil
}

// draw gives the share of a matrix that begins at (row, column): each weight depends on its place alone, so every rank
// draws the same ones.
func (m *model) draw(matrix, rows, columns, row, column, fanIn int) []float32 {
	w := make([]float32, 0, rows*columns)
	for r := row; r < row+rows; r++ {
		for c := column; c < column+columns; c++ {
			x := uint64(matrix)<<48 ^ uint64(r)<<24 ^ uint64(c) + 0x9e3779b97f4a7c15 // splitmix64
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			x ^= x >> 31
			v := float32(float64(x)/(1<<63)-1) * float32(math.Sqrt(3/float64(fanIn)))
			if m.integers {
				v = float32(x%3) - 1
			}
			if m.bf16 {
				v = fromBF16(toBF16(v))
			}
			w = append(w, v)
		}
	}
	return w
}

// step gives the logits of a batch at a position: a row of vocab for each token.
func (m *model) step(tokens []uint32, position int) ([]float32, error) {
	x := make([]float32, len(tokens)*dim)
	for i := range x {
		x[i] = m.settle(m.embed[int(tokens[i/dim])*dim+i%dim] + m.embed[position%vocab*dim+i%dim])
	}
	for l := range layers {
		h := product(x, m.up[l], dim)
		for i, v := range h {
			h[i] = m.act(v)
		}
		y := product(h, m.down[l], hidden/m.host.World())
		if err := m.sum(y); err != nil {
			return nil, err
		}
		for i, v := range y {
			x[i] = m.settle(x[i] + v)
		}
	}
	mine, logits := product(x, m.head, dim), make([]float32, len(tokens)*vocab)
	defer m.count(time.Now())
	return logits, m.host.AllGatherRows(fabric.Bytes(logits), fabric.Bytes(mine), vocab/m.host.World()*4)
}

// sum adds x over the ranks, in place.
func (m *model) sum(x []float32) error {
	defer m.count(time.Now())
	if !m.bf16 {
		return m.host.AllReduce(fabric.Bytes(x), fabric.Bytes(x), fabric.F32, fabric.Sum)
	}
	m.wire = m.wire[:0]
	for _, v := range x {
		m.wire = append(m.wire, toBF16(v))
	}
	err := m.host.AllReduce(fabric.Bytes(m.wire), fabric.Bytes(m.wire), fabric.BF16, fabric.Sum)
	for i, v := range m.wire {
		x[i] = fromBF16(v)
	}
	return err
}

func (m *model) count(began time.Time) { m.collective += time.Since(began) }

// product is x times w transposed, both in rows of inputs.
func product(x, w []float32, inputs int) []float32 {
	y := make([]float32, 0, len(x)/inputs*(len(w)/inputs))
	for ; len(x) > 0; x = x[inputs:] {
		for o := 0; o < len(w); o += inputs {
			var sum float32
			for i, v := range w[o : o+inputs] {
				sum += x[i] * v
			}
			y = append(y, sum)
		}
	}
	return y
}

// act is the nonlinearity of a block, settle what its residual goes through: with integers both keep a sum over hidden
// within what bf16 holds exactly.
func (m *model) act(x float32) float32 {
	if m.integers {
		return min(max(x, 0), 1)
	}
	return x / (1 + float32(math.Exp(-float64(x))))
}

func (m *model) settle(x float32) float32 {
	if m.integers {
		return min(max(x, -2), 2)
	}
	return x
}

func toBF16(x float32) uint16 { // to nearest even
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }
