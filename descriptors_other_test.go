//go:build !linux

package hipfabric

// descriptorsAPart is not stated here.
const descriptorsAPart = 0
