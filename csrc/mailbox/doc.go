// Package mailbox holds the kernels of the kernels gate, which hand a call from an engine's stream to the host and its result
// back: stage and collect. mailbox.h is the layout that device, host and Go share; docs/kernels.md says what each kernel
// promises. The built kernels are embedded; on Linux with cgo the package also links their host build (hf_stage__host,
// hf_collect__host), which a software device launches.
package mailbox

// The headers and the kernel are embedded so that importers are rebuilt, and vendored copies complete, when only they change.
import "embed"

//go:embed *.h *.hip
var _ embed.FS
