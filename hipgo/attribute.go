package hipgo

import "fmt"

// Attribute is a hipDeviceAttribute_t: the same number in every version from 5.2 on.
type Attribute int

// The attributes that matter to what is built on this package; any other number may be asked for too.
const (
	AttributeAsyncEngineCount       Attribute = 2
	AttributeCanMapHostMemory       Attribute = 3
	AttributeConcurrentKernels      Attribute = 8
	AttributeHostNativeAtomics      Attribute = 15
	AttributeIntegrated             Attribute = 16
	AttributeComputeCapabilityMajor Attribute = 23
	AttributeManagedMemory          Attribute = 24
	AttributeComputeCapabilityMinor Attribute = 61
	AttributeMultiprocessorCount    Attribute = 63
	AttributePCIBusID               Attribute = 67
	AttributePCIDeviceID            Attribute = 68
	AttributePCIDomainID            Attribute = 69
	AttributeStreamPriorities       Attribute = 78
	AttributeUnifiedAddressing      Attribute = 85
	AttributeWarpSize               Attribute = 87
	AttributeDMABuf                 Attribute = 93 // late 7.x
	AttributeIsLargeBar             Attribute = 10011
	AttributeStreamWaitValue        Attribute = 10013 // AMD's own runtime says 1 for every device: SelfTest proves it
	AttributeWallClockRate          Attribute = 10017 // kHz
)

func (a Attribute) String() string {
	if name, ok := attributeNames[a]; ok {
		return "hipDeviceAttribute" + name
	}
	return fmt.Sprintf("hipDeviceAttribute %d", int(a))
}

var attributeNames = map[Attribute]string{
	AttributeAsyncEngineCount:       "AsyncEngineCount",
	AttributeCanMapHostMemory:       "CanMapHostMemory",
	AttributeConcurrentKernels:      "ConcurrentKernels",
	AttributeHostNativeAtomics:      "HostNativeAtomicSupported",
	AttributeIntegrated:             "Integrated",
	AttributeComputeCapabilityMajor: "ComputeCapabilityMajor",
	AttributeManagedMemory:          "ManagedMemory",
	AttributeComputeCapabilityMinor: "ComputeCapabilityMinor",
	AttributeMultiprocessorCount:    "MultiprocessorCount",
	AttributePCIBusID:               "PciBusId",
	AttributePCIDeviceID:            "PciDeviceId",
	AttributePCIDomainID:            "PciDomainID",
	AttributeStreamPriorities:       "StreamPrioritiesSupported",
	AttributeUnifiedAddressing:      "UnifiedAddressing",
	AttributeWarpSize:               "WarpSize",
	AttributeDMABuf:                 "DmaBufSupported",
	AttributeIsLargeBar:             "IsLargeBar",
	AttributeStreamWaitValue:        "CanUseStreamWaitValue",
	AttributeWallClockRate:          "WallClockRate",
}
