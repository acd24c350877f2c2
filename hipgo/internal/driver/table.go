package driver

// Symbol is an optional entry point.
type Symbol int

// The optional entry points, numbered as in hipshim.h.
const (
	SymbolCUMask       Symbol = iota // hipExtStreamCreateWithCUMask
	SymbolCaptureMode                // hipThreadExchangeStreamCaptureMode
	SymbolAddressRange               // hipMemGetAddressRange
	SymbolDMABuf                     // ROCr's export, or hipMemGetHandleForAddressRange
)

// Pointer is what a runtime knows of an address. Type is numbered by the runtime's version.
type Pointer struct {
	Type, Device       int
	DevicePtr, HostPtr uintptr
	Base               uintptr
	Size               int // bytes at Base; 0: unknown
}

// Dims are a launch's dimensions; Shared is in bytes.
type Dims struct {
	Grid, Block [3]uint32
	Shared      uint32
}

// What WriteWait tells of a stream that it asked: that it captures, or nothing.
const (
	Captures   = -1
	Unanswered = -2
)
