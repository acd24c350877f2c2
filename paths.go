package hipfabric

// Path is one way to move data, and what Open decided about it.
type Path struct {
	Name   string `json:"name"`   // "tcp"
	Chosen bool   `json:"chosen"` // the one that the group uses
	Reason string `json:"reason"` // why it was chosen or refused
}

// pathNames are all there are, best first.
func pathNames() []string { return []string{"tcp"} }
