package stage

import "github.com/hipfabric/hipfabric/fabric"

func newKernelsGate(t *Transport) (gate, error) {
	return nil, fabric.Unsupportedf("the kernels gate on %v", t.d)
}
