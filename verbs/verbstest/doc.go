// Package verbstest is RoCE HCAs wired in memory: package verbs as it is runs over them, on a host without RDMA.
//
//	f, err := verbstest.New(seed, verbstest.Ring(3))
//	defer f.Close()
//	lib := f.Host(0).Library() // a *verbs.Library
//
// It keeps what a reliable connection over RoCE promises, and nothing more. Requests of a queue pair execute and complete in order;
// nothing is ordered between queue pairs. A request that completed is placed; one that has not may be read from its memory at any
// time. With Fabric.OutOfOrder, or in memory of relaxed ordering, writes land in any order: only a receive that completes tells that
// all before it is there. In memory of relaxed ordering a write passes what is before it; one to other memory passes nothing. A
// word that ends a piece of a write, and is aligned, is stored with release: load it atomically.
//
// It is strict where devices differ: a send's slot is free when a later completion was polled (rxe: when it is complete), what
// differs from a permitted transition is EINVAL, a CQ that overflows takes its queue pairs along, a responder that denies a request
// goes to ERR with an event (rxe: without), a wrong local key and a receive that is too small have statuses of their own (rxe: local
// and remote operation error), of failed completions the fields that are worth nothing hold garbage, and a context
// with something left is EBUSY.
//
// It differs from rxe also so: a port that goes down has work wait out its retries, as on real HCAs (HCA.FailLocally: as rxe);
// seven retries are seven, where rxe never ends; there are GIDs of RoCE v1, and sparse tables; QP.DataInOrder says yes while bytes
// are placed in order (rxe: no); link down resolves no address. It has no atomics, no dma-buf, no routers and no packet numbers but
// the first: those that differ between the ends lose all packets.
//
// Time is real: timeouts and delays are waited for. Choices are the seed's; with Fabric.Hold and Step a test also decides when. The
// HCAs' work is done by a goroutine, which blocks while there is none, and by those that poll a CQ: never by a post before it returns.
package verbstest
