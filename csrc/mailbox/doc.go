// Package mailbox holds the kernels of the kernels gate, which hand a call from an engine's stream to the host and its result
// back: stage and collect. mailbox.h is the layout that device, host and Go share; docs/kernels.md says what each kernel
// promises. build/kernels.sh builds what is embedded. On Linux with cgo the package also links the kernels' host build
// (hf_stage__host, hf_collect__host), which a software device launches.
package mailbox

import "embed"

// Image is a bundle of code objects for gfx90a, gfx942, gfx1030, gfx1100, gfx1151 and gfx1201. Read only.
//
//go:embed mailbox.hipfb
var Image []byte

// PTX is the same kernels for CUDA devices of compute capability 7.0 and later; the driver assembles it. Read only.
//
//go:embed mailbox.ptx
var PTX []byte

// Embedded so that importers are rebuilt, and vendored copies are whole, when only these change.
//
//go:embed *.h *.hip
var _ embed.FS
