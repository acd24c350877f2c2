package gpu

import (
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// What --device takes beside hip:N and cuda:N.
const (
	Auto     = "auto"     // a real GPU where there is one, else the software device
	Software = "software" // the software device in this process
)

// Choice is which device a command works on; the zero one is auto.
type Choice struct {
	kind    string // "", Software, "hip" or "cuda"
	ordinal int    // of hip and cuda
}

// Parse reads a --device.
func Parse(text string) (Choice, error) {
	switch text {
	case Auto:
		return Choice{}, nil
	case Software:
		return Choice{kind: Software}, nil
	}
	kind, number, found := strings.Cut(text, ":")
	if n, err := strconv.Atoi(number); found && (kind == "hip" || kind == "cuda") && err == nil && n >= 0 {
		return Choice{kind: kind, ordinal: n}, nil
	}
	return Choice{}, fabric.Invalidf("--device is %q; auto, software, or hip:N or cuda:N with the GPU's number as doctor hip lists it", text)
}
