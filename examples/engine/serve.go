package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// control is what of Group.Control the engine uses, so that tests can run it over fabrictest.
type control interface {
	Broadcast(ctx context.Context, msg []byte) error
	Recv(ctx context.Context, buf []byte) (n, from int, err error)
	Barrier(ctx context.Context) error
}

// work is what the leader is asked to do; followers learn it from its plans.
type work struct {
	bf16, random           bool
	requests, batch, steps int
}

const maxBatch = 4096

// serve decodes what the leader plans and gives the tokens and a line of where the time went. A plan is the number of
// steps and the first token of each sequence; one without steps ends the work. Followers idle on Control for as long as it takes.
func serve(ctx context.Context, host *fabric.Collective, c control, w work) (tokens []uint32, report string, err error) {
	if w.batch < 0 || w.batch > maxBatch {
		return nil, "", fmt.Errorf("batch %d is outside 0..%d", w.batch, maxBatch)
	}
	m, err := newModel(host, w.bf16, !w.random)
	if err != nil {
		return nil, "", err
	}
	if err := c.Barrier(ctx); err != nil { // ranks load for uneven times
		return nil, "", err
	}
	began, waited, message := time.Now(), time.Duration(0), make([]byte, 4*(1+maxBatch))
	for request := 0; ; request++ {
		asked := time.Now()
		plan, err := next(ctx, host.Rank(), c, w, request, message)
		waited += time.Since(asked)
		if err != nil {
			return nil, "", err
		}
		if plan[0] == 0 {
			break
		}
		for step := range int(plan[0]) {
			logits, err := m.step(plan[1:], step)
			if err != nil {
				return nil, "", err
			}
			for b := range plan[1:] {
				plan[1+b] = best(logits[b*vocab : (b+1)*vocab])
			}
			tokens = append(tokens, plan[1:]...)
		}
	}
	total := time.Since(began)
	share := func(d time.Duration) float64 { return 100 * d.Seconds() / total.Seconds() }
	report = fmt.Sprintf("world %d: %d tokens (crc %08x), %.0f tokens/s; compute %.0f%%, collective %.0f%%, control %.0f%%", host.World(),
		len(tokens), crc32.ChecksumIEEE(fabric.Bytes(tokens)), float64(len(tokens))/total.Seconds(),
		share(total-m.collective-waited), share(m.collective), share(waited))
	return tokens, report, c.Barrier(ctx) // nobody leaves while another still calls
}

// next is the plan of a request: the leader makes and sends it, followers wait for it.
func next(ctx context.Context, rank int, c control, w work, request int, message []byte) ([]uint32, error) {
	if rank != 0 {
		n, _, err := c.Recv(ctx, message)
		if err != nil || n < 4 {
			return []uint32{0}, err
		}
		plan := make([]uint32, n/4)
		for i := range plan {
			plan[i] = binary.LittleEndian.Uint32(message[4*i:])
		}
		return plan, nil
	}
	plan := []uint32{0}
	if request < w.requests {
		plan[0] = uint32(w.steps)
		for b := range w.batch {
			plan = append(plan, uint32((request*w.batch+b)*7%vocab))
		}
	}
	message = message[:0]
	for _, word := range plan {
		message = binary.LittleEndian.AppendUint32(message, word)
	}
	return plan, c.Broadcast(ctx, message)
}

// best is the token with the highest logit, the first of equals.
func best(logits []float32) uint32 { return uint32(slices.Index(logits, slices.Max(logits))) }
