package hipgo

import "fmt"

// ExportDMABuf gives a dma-buf of n bytes of device memory at p, so that another device can reach them, and where in it p
// lies. The caller closes fd; the memory must outlive it. Errors: *UnsupportedError without FeatureDMABuf.
//
// Implements: hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t dptr, size_t size,
// hipMemRangeHandleType handleType, unsigned long long flags); before it, hsa_amd_portable_export_dmabuf
func (d *Device) ExportDMABuf(p uintptr, n int) (fd int, offset uint64, err error) {
	if !d.rt.Has(FeatureDMABuf) {
		return -1, 0, &UnsupportedError{Device: d.String(), Feature: "no export of device memory as a dma-buf", Need: "HIP 7 or newer"}
	}
	if n <= 0 {
		return -1, 0, invalid("a dma-buf of %d bytes: at least 1", n)
	}
	fd, offset, code := d.rt.t.ExportDMABuf(d.ordinal, p, n)
	if code != 0 {
		return -1, 0, fmt.Errorf("hipgo: a dma-buf of %d bytes at %#x: %w", n, p, d.rt.fail("hipMemGetHandleForAddressRange", code))
	}
	return fd, offset, nil
}
