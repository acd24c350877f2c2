//go:build !cgo || !linux

package driver

import "unsafe"

// Built says that this build can load a runtime.
const Built = false

// Table cannot be had in this build.
type Table struct{}

const notSupported = 801 // hipErrorNotSupported

func New(unsafe.Pointer, unsafe.Pointer, string) (*Table, string, int) {
	return nil, "", notSupported
}

func open(string, bool) (uintptr, string) {
	return 0, ""
}

func given(uintptr) bool {
	return false
}

func where(uintptr) string {
	return ""
}

func load(uintptr) (*Table, string, int) {
	return nil, "", notSupported
}

func (*Table) Library() string {
	return ""
}

func (*Table) Version() int {
	return 0
}

func (*Table) Has(Symbol) bool {
	return false
}

func (*Table) Count() (int, int) {
	return 0, notSupported
}

func (*Table) Attribute(int, int) (int, int) {
	return 0, notSupported
}

func (*Table) Name(int) (string, int) {
	return "", notSupported
}

func (*Table) PCI(int) (string, int) {
	return "", notSupported
}

func (*Table) Arch(int) (string, int) {
	return "", notSupported
}

func (*Table) Memory(int) (uint64, uint64, int) {
	return 0, 0, notSupported
}

func (*Table) PriorityRange(int) (int, int, int) {
	return 0, 0, notSupported
}

func (*Table) Malloc(int, int) (uintptr, int) {
	return 0, notSupported
}

func (*Table) Free(int, uintptr) int {
	return notSupported
}

func (*Table) HostMalloc(int, int) ([]byte, uintptr, int) {
	return nil, 0, notSupported
}

func (*Table) HostFree(int, []byte) int {
	return notSupported
}

func (*Table) Pointer(int, uintptr) (Pointer, int) {
	return Pointer{}, notSupported
}

func (*Table) ExportDMABuf(int, uintptr, int) (int, uint64, int) {
	return -1, 0, notSupported
}

func (*Table) StreamCreate(int, uint32) (uintptr, int) {
	return 0, notSupported
}

func (*Table) StreamCreatePriority(int, uint32, int) (uintptr, int) {
	return 0, notSupported
}

func (*Table) StreamCreateMask(int, []uint32) (uintptr, int) {
	return 0, notSupported
}

func (*Table) StreamDestroy(int, uintptr) int {
	return notSupported
}

func (*Table) StreamQuery(int, uintptr) int {
	return notSupported
}

func (*Table) StreamCapturing(int, uintptr) (int, int) {
	return 0, notSupported
}

func (*Table) StreamWaitEvent(int, uintptr, uintptr) int {
	return notSupported
}

func (*Table) Copy(int, uintptr, uintptr, uintptr, int, int) int {
	return notSupported
}

func (*Table) Memset(int, uintptr, uintptr, byte, int) int {
	return notSupported
}

func (*Table) Wait64(int, uintptr, uintptr, uint64, uint32, uint64) int {
	return notSupported
}

func (*Table) Wait32(int, uintptr, uintptr, uint32, uint32, uint32) int {
	return notSupported
}

func (*Table) Write64(int, uintptr, uintptr, uint64) int {
	return notSupported
}

func (*Table) Write32(int, uintptr, uintptr, uint32) int {
	return notSupported
}

func (*Table) WriteWait(int, uintptr, uintptr, uint64, uintptr, uint64, bool) (int, int) {
	return 0, notSupported
}

func (*Table) EventCreate(int, uint32) (uintptr, int) {
	return 0, notSupported
}

func (*Table) EventDestroy(int, uintptr) int {
	return notSupported
}

func (*Table) EventRecord(int, uintptr, uintptr) int {
	return notSupported
}

func (*Table) EventQuery(int, uintptr) int {
	return notSupported
}

func (*Table) EventElapsed(int, uintptr, uintptr) (float32, int) {
	return 0, notSupported
}

func (*Table) BeginCapture(int, uintptr, int) int {
	return notSupported
}

func (*Table) EndCapture(int, uintptr) (uintptr, int) {
	return 0, notSupported
}

func (*Table) GraphInstantiate(int, uintptr) (uintptr, int) {
	return 0, notSupported
}

func (*Table) GraphLaunch(int, uintptr, uintptr) int {
	return notSupported
}

func (*Table) GraphDestroy(int, uintptr) int {
	return notSupported
}

func (*Table) ExecDestroy(int, uintptr) int {
	return notSupported
}

func (*Table) ModuleLoad(int, []byte) (uintptr, unsafe.Pointer, int) {
	return 0, nil, notSupported
}

func (*Table) ModuleUnload(int, uintptr, unsafe.Pointer) int {
	return notSupported
}

func (*Table) ModuleFunction(int, uintptr, string) (uintptr, int) {
	return 0, notSupported
}

func (*Table) Launch(int, uintptr, uintptr, Dims, []byte, []uint32) int {
	return notSupported
}

func (*Table) Current() (int, int) {
	return 0, notSupported
}

func (*Table) SetCurrent(int) int {
	return notSupported
}

func (*Table) LastError() int {
	return notSupported
}

func (*Table) ExchangeCaptureMode(int) (int, int) {
	return 0, notSupported
}
