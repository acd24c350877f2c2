package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A key is one thing that both sides measure.
type key struct {
	op    string
	bytes int
}

// results holds a figure for each key, in the comparison's unit.
type results map[key]float64

// A contender is a program that measures.
type contender interface {
	prepare(ctx context.Context, dir string) error // builds it into dir, or says what to install
	measure(ctx context.Context) (results, error)
}

// A pairing is a program that measures both sides at once, turn and turn about.
type pairing interface {
	prepare(ctx context.Context, dir string) error
	measureBoth(ctx context.Context) (ours, theirs results, err error)
}

// A comparison holds ours against one other program.
type comparison struct {
	name         string // as -only knows it
	title        string // as the table shows it
	world        int
	ours, theirs contender
	both         pairing         // instead of the two
	pairs        map[key]key     // ours -> theirs; nil: same keys
	bars         map[key]float64 // the ratio that a key must not exceed
	unit         string          // of figures; "" is us
	atLeast      bool            // more is better: the ratio must not fall below the bar
}

func (c *comparison) prepare(ctx context.Context, dir string) error {
	if c.both != nil {
		return c.both.prepare(ctx, dir)
	}
	return errors.Join(c.ours.prepare(ctx, dir), c.theirs.prepare(ctx, dir))
}

// A row is a comparison's outcome for one key.
type row struct {
	c            *comparison
	key          key
	ours, theirs float64 // medians of all measurements
	ratio        float64 // median of the rounds' ratios
	low, high    float64 // the extreme rounds
}

// run measures each round's four and makes rows of them.
func (c *comparison) run(ctx context.Context, rounds int) ([]row, error) {
	all := make([][4]results, rounds)
	for r := range all {
		var err error
		if all[r], err = c.round(ctx); err != nil {
			return nil, fmt.Errorf("round %d: %w", r+1, err)
		}
	}
	return c.rows(all)
}

// round measures ours, theirs, theirs, ours, so that a drift of the machine meets both alike.
func (c *comparison) round(ctx context.Context) (four [4]results, err error) {
	if c.both != nil {
		ours, theirs, err := c.both.measureBoth(ctx)
		return [4]results{ours, theirs, theirs, ours}, err
	}
	for i, one := range []contender{c.ours, c.theirs, c.theirs, c.ours} {
		if four[i], err = one.measure(ctx); err != nil {
			return four, err
		}
	}
	return four, nil
}

// rows turns the rounds' measurements into a row for each key that both sides have.
func (c *comparison) rows(all [][4]results) ([]row, error) {
	var keys []key
	for k := range all[0][0] {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(strings.Compare(a.op, b.op), a.bytes-b.bytes) })
	var rows []row
	for _, k := range keys {
		other := k
		if c.pairs != nil {
			var paired bool
			if other, paired = c.pairs[k]; !paired {
				continue
			}
		}
		var ours, theirs, ratios []float64
		for r, m := range all {
			a1, b1, b2, a2 := m[0][k], m[1][other], m[2][other], m[3][k]
			if a1 <= 0 || a2 <= 0 || b1 <= 0 || b2 <= 0 {
				return nil, fmt.Errorf("round %d: no figure for %s of %d bytes", r+1, k.op, k.bytes)
			}
			ours, theirs = append(ours, a1, a2), append(theirs, b1, b2)
			ratios = append(ratios, (a1+a2)/(b1+b2))
		}
		rows = append(rows, row{
			c: c, key: k, ours: median(ours), theirs: median(theirs),
			ratio: median(ratios), low: slices.Min(ratios), high: slices.Max(ratios),
		})
	}
	if len(rows) == 0 {
		return nil, errors.New("the two programs have no call in common")
	}
	return rows, nil
}

// median of a non-empty slice, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}
