package hiptest

import "github.com/hipfabric/hipfabric/hipgo/internal/driver/soft"

// Kernel gives an engine's kernel its host twin: void symbol(const void *args, unsigned blocks, unsigned threads) in the
// shared library so, called once a launch on the queue's thread with the launch's parameters packed as in a kernel's
// argument segment. Device addresses among them are replaced by ones that the host may touch.
//
// sizes are the parameters' bytes; without them the library says them in an array of unsigned, symbol + "_args", ended
// by 0. A twin that waits for the host calls, in each turn, the hook that it keeps in
//
//	void (*softhip_pause_hook)(void);
//
// which is set when the library is loaded: a twin that spins without it starves the others. The registration lasts as
// long as the process. The image that the engine loads must have the kernel too, for the device's arch.
func Kernel(name, so, symbol string, sizes ...int) error {
	bytes := make([]uint32, len(sizes))
	for i, n := range sizes {
		bytes[i] = uint32(min(max(n, 0), 1<<30))
	}
	return soft.Kernel(name, so, symbol, bytes)
}

// Kernel is the package's Kernel.
func (w *World) Kernel(name, so, symbol string, sizes ...int) error {
	return Kernel(name, so, symbol, sizes...)
}
