package hipfabric

// Path is one way to move data, and what Open decided about it.
type Path struct {
	Name   string `json:"name"`   // "tcp" or "roce"; "staged" and "mailbox", once Device was called
	Chosen bool   `json:"chosen"` // the one that the group uses
	Reason string `json:"reason"` // why it was chosen or refused

	Gate   string `json:"gate,omitempty"`   // "words" or "kernels", of "staged"
	Device string `json:"device,omitempty"` // name, PCI id, HIP version and library, of "staged"
}

// pathStaged is the path of calls on device memory: over another one, which Config.Paths names.
const pathStaged = "staged"

// pathMailbox is the path of small calls on device memory, before staged, where roce joins the ranks.
const pathMailbox = "mailbox"

// The paths of host memory.
const (
	pathTCP  = "tcp"
	pathRoCE = "roce"
)

// pathNames are all there are.
func pathNames() []string { return []string{pathTCP, pathRoCE} }
