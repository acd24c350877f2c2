package hiptest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings say what the software device is like. The zero value is one discrete gfx1151-like device under HIP 7.15.
type Settings struct {
	Devices    int // 0: 1
	HIP        string
	Arch       string // 0: gfx1151
	Name       string
	Integrated bool // the host can touch device memory
	MemoryMB   int  // of each device; 0: 16,384
	Visible    []int

	HWQueues       int  // hardware queues a priority pool (GPU_MAX_HW_QUEUES); 0: 4
	IgnorePriority bool // streams of every priority share the normal pool
	SDMARings      int  // 0: 2, one a direction
	// BlitBytes: a copy up to here runs on the stream's own queue, a larger one on an SDMA ring. 0: 16,384, or none below
	// HIP 7; -1: none.
	BlitBytes  int
	CopyBlocks bool // a copy behind unfinished work blocks its caller (HIP 6)
	StreamLock bool // hipStreamSynchronize locks others out of its stream

	NoStreamWait    bool // attribute 10013 is 0 and value operations fail
	StreamWaitError bool // asking for that attribute fails
	HostReleases    bool // only a host store releases a wait, never a stream's write
	WaitsAcquire    bool // a wait acquires, as AMD's does not
	HostCoherent    bool // HIP_HOST_COHERENT=1
	Dirty           bool // new memory holds junk, as HIP's may
	Capture         CaptureValues

	CopyLatency   time.Duration // to the microsecond
	CopyBandwidth int           // bytes a second, to the megabyte; 0: as fast as memcpy

	NoGPU   int      // 100 or 101: no device, with the codes of HIP 6 and later or of HIP 5
	Missing []string // functions that the library lacks
}

// CaptureValues is what happens to a value operation on a capturing stream.
type CaptureValues int

// What HIP runtimes do: AMD's before July 2026, others, AMD's since.
const (
	CaptureRuns CaptureValues = iota // at once, and not in the graph
	CaptureRefuses
	CaptureRecords
)

// String is the text that softhip_configure and, in a library of Library, the environment variable SOFTHIP take.
func (s Settings) String() string {
	var words []string
	number := func(key string, v int) {
		if v != 0 {
			words = append(words, key+"="+strconv.Itoa(v))
		}
	}
	text := func(key, v string) {
		if v != "" {
			words = append(words, key+"="+v)
		}
	}
	yes := func(set bool, word string) {
		if set {
			words = append(words, word)
		}
	}
	number("devices", s.Devices)
	text("hip", s.HIP)
	text("arch", s.Arch)
	text("name", strings.ReplaceAll(s.Name, " ", "_"))
	yes(s.Integrated, "integrated=1")
	number("memory_mb", s.MemoryMB)
	text("visible", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Visible), " ", ","), "[]"))
	number("hw_queues", s.HWQueues)
	yes(s.IgnorePriority, "ignore_priority=1")
	number("sdma_rings", s.SDMARings)
	if s.BlitBytes < 0 {
		words = append(words, "blit_bytes=0")
	} else {
		number("blit_bytes", s.BlitBytes)
	}
	yes(s.CopyBlocks, "copy_blocks=1")
	yes(s.StreamLock, "stream_lock=1")
	yes(s.NoStreamWait, "stream_wait=0")
	yes(s.StreamWaitError, "stream_wait=error")
	yes(s.HostReleases, "write_releases=0")
	yes(s.WaitsAcquire, "relaxed_waits=0")
	yes(s.HostCoherent, "host_coherent=1")
	yes(s.Dirty, "dirty=1")
	yes(s.Capture == CaptureRefuses, "capture_values=refuse")
	yes(s.Capture == CaptureRecords, "capture_values=record")
	number("copy_latency_us", int(s.CopyLatency/time.Microsecond))
	number("copy_mb_s", s.CopyBandwidth/1_000_000)
	number("no_gpu", s.NoGPU)
	text("missing", strings.Join(s.Missing, ","))
	return strings.Join(words, " ")
}

func (s Settings) check() error {
	for _, word := range append([]string{s.HIP, s.Arch}, s.Missing...) {
		if strings.ContainsAny(word, " \t\n,") {
			return fmt.Errorf("hiptest: setting %q has a space or a comma", word)
		}
	}
	switch {
	case s.CopyBandwidth != 0 && s.CopyBandwidth < 1_000_000:
		return fmt.Errorf("hiptest: CopyBandwidth is %d bytes a second; 1,000,000 or more", s.CopyBandwidth)
	case s.Capture < CaptureRuns || s.Capture > CaptureRecords:
		return fmt.Errorf("hiptest: there is no Capture %d", s.Capture)
	case s.NoStreamWait && s.StreamWaitError:
		return errors.New("hiptest: NoStreamWait and StreamWaitError exclude each other")
	}
	return nil
}
