package conform

import "github.com/hipfabric/hipfabric/hipgo"

// runtimeCalls are the calls whose meaning is under test. Tests put runtimes in their place that get one thing wrong.
type runtimeCalls struct {
	wait       func(s hipgo.Stream, bits int, addr uintptr, v uint64, c hipgo.Condition, mask uint64) error
	write      func(s hipgo.Stream, bits int, addr uintptr, v uint64) error
	writeFlags func(s hipgo.Stream, addr uintptr, v uint64, flags uint32) (code int)
	writeWait  func(s hipgo.Stream, ready uintptr, r uint64, done uintptr, d uint64) error
	copy       func(s hipgo.Stream, dst, src uintptr, n int) error
	query      func(s hipgo.Stream) (bool, error) // of a capturing stream
	capturing  func(s hipgo.Stream) (hipgo.CaptureStatus, error)
	stream     func(p *probe) (hipgo.Stream, error)
}

func realCalls() runtimeCalls {
	return runtimeCalls{
		wait: func(s hipgo.Stream, bits int, addr uintptr, v uint64, c hipgo.Condition, mask uint64) error {
			if bits == 32 {
				return s.WaitValue32(addr, uint32(v), c, uint32(mask))
			}
			return s.WaitValue64(addr, v, c, mask)
		},
		write: func(s hipgo.Stream, bits int, addr uintptr, v uint64) error {
			if bits == 32 {
				return s.WriteValue32(addr, uint32(v))
			}
			return s.WriteValue64(addr, v)
		},
		writeFlags: func(s hipgo.Stream, addr uintptr, v uint64, flags uint32) int {
			return s.Device().Runtime().Table().Write64Flags(s.Device().Ordinal(), s.Raw(), addr, v, flags)
		},
		writeWait: hipgo.Stream.WriteWait,
		copy:      func(s hipgo.Stream, dst, src uintptr, n int) error { return s.Copy(dst, src, n, hipgo.CopyDefault) },
		query:     hipgo.Stream.Query,
		capturing: hipgo.Stream.Capturing,
		stream:    func(p *probe) (hipgo.Stream, error) { return p.d.NewStream(hipgo.StreamNonBlocking) },
	}
}
