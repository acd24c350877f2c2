// Package mailbox holds the kernels of the device paths. The kernels gate's hand a call from an engine's stream to the host and its
// result back: stage and collect, of mailbox.hip, mailbox.h and docs/kernels.md. The mailbox's are a call each, over memory that HCAs
// write: gather, all-reduce and exchange, of calls.hip, region.h and docs/mailbox.md. The headers are the layout that device, host
// and Go share. build/kernels.sh builds what is embedded. On Linux with cgo the package also links the kernels' host build
// (hf_stage__host and so on), which a software device launches.
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
