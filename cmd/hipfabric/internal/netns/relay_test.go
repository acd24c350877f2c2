//go:build linux

package netns

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// weather is what a bad cable does to each frame, in each direction. The zero one carries all at once.
type weather struct {
	Rate    float64       // bytes a second; 0 is no bound
	Queue   time.Duration // what waits longer for its turn is lost; 0 is 100 ms
	Delay   time.Duration
	Loss    float64 // probability
	Reorder float64 // probability to skip the Delay
	Flip    float64 // probability that one bit changes
	Swap    int     // in the so-manieth full frame two words change places, which TCP's checksum cannot see; 0 is none
}

// relay is a cable with a program in its middle, which does to its frames what netem would: kernels without it exist.
func relay(t testing.TB, a, b *Host, n Net, w weather) (atA, atB *Port) {
	t.Helper()
	middle := newHost(t, -1)
	ports := attach([]*Host{a, b}, middle, n)
	files := make([]*os.File, 2)
	for i, p := range ports {
		require.NoError(t, p.Host.Inside(func() error { return wholeFrames(p.Device) }))
		require.NoError(t, middle.Inside(func() (err error) { files[i], err = listenFrames(p.farName); return err }))
	}
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() { carry(files[i], files[1-i], w, rand.New(rand.NewPCG(uint64(i), 3))) })
	}
	t.Cleanup(func() {
		for _, f := range files {
			_ = f.Close()
		}
		wg.Wait()
	})
	return ports[0], ports[1]
}

// wholeFrames has the kernel send frames as a wire would carry them: none above the MTU, all with their checksums.
func wholeFrames(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, command := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_SGRO} {
		value := struct{ command, on uint32 }{command, 0}
		var request struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}
		copy(request.name[:], device)
		request.data = unsafe.Pointer(&value)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		runtime.KeepAlive(&value)
		if errno != 0 {
			return os.NewSyscallError("SIOCETHTOOL", errno)
		}
	}
	return nil
}

// listenFrames opens a device of this namespace for all that comes in.
func listenFrames(device string) (*os.File, error) {
	every := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(every))
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), device)
	link, err := net.InterfaceByName(device)
	for _, do := range []func() error{
		func() error { return err },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) },
		func() error { return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: link.Index}) },
	} {
		if err := do(); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// due is a frame and when it leaves.
type due struct {
	frame []byte
	at    time.Time
}

// carry moves frames one way until a file is closed.
func carry(from, to *os.File, w weather, source *rand.Rand) {
	queue := make(chan due, 1<<16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		deliver(to, queue)
	}()
	defer func() { close(queue); <-done }()
	if w.Queue == 0 {
		w.Queue = 100 * time.Millisecond
	}
	buf := make([]byte, 64<<10)
	var free time.Time // when the cable has sent all before
	for full := 0; ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		now := time.Now()
		if free.Before(now) {
			free = now
		}
		if source.Float64() < w.Loss || free.Sub(now) > w.Queue {
			continue
		}
		frame := append([]byte(nil), buf[:n]...)
		if source.Float64() < w.Flip {
			bit := 8*etherBytes + source.IntN(8*(n-etherBytes))
			frame[bit/8] ^= 1 << (bit % 8)
		}
		if n > 1400 {
			if full++; full == w.Swap {
				swapWords(frame)
			}
		}
		if w.Rate > 0 {
			free = free.Add(time.Duration(float64(n) / w.Rate * float64(time.Second)))
		}
		at := free
		if source.Float64() >= w.Reorder {
			at = at.Add(w.Delay)
		}
		select {
		case queue <- due{frame, at}:
		default: // the queue is full, as queues are
		}
	}
}

const etherBytes = 14

// swapWords exchanges two neighbouring words that differ, near the end of a frame, where the payload is.
func swapWords(frame []byte) {
	for i := len(frame) - 8 - len(frame)%2; i > 200; i -= 2 {
		if frame[i] != frame[i+2] || frame[i+1] != frame[i+3] {
			frame[i], frame[i+1], frame[i+2], frame[i+3] = frame[i+2], frame[i+3], frame[i], frame[i+1]
			return
		}
	}
}

// deliver sends each frame when it is due; one that skips the delay overtakes.
func deliver(to *os.File, queue <-chan due) {
	var waiting []due // by time
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for len(waiting) > 0 && !waiting[0].at.After(time.Now()) {
			_, _ = to.Write(waiting[0].frame) // a device that is down loses it
			waiting = waiting[1:]
		}
		next := time.Hour
		if len(waiting) > 0 {
			next = time.Until(waiting[0].at)
		}
		timer.Reset(next)
		select {
		case d, ok := <-queue:
			if !ok {
				return
			}
			i := len(waiting)
			for i > 0 && waiting[i-1].at.After(d.at) {
				i--
			}
			waiting = append(waiting, due{})
			copy(waiting[i+1:], waiting[i:])
			waiting[i] = d
		case <-timer.C:
		}
	}
}
