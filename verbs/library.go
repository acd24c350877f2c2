package verbs

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Config says which libibverbs to load. The zero value takes libibverbs.so.1 from where the system's linker looks.
type Config struct {
	Library string // a file
}

// Library is a loaded libibverbs. It is never unloaded and needs no Close.
type Library struct{ t driver.Table }

// Open loads libibverbs. It succeeds where there is no RDMA device: Devices says so. Errors: *LoadError, which is
// errors.ErrUnsupported.
func Open(c Config) (*Library, error) {
	t, err := driver.Load(c.Library)
	if err != nil {
		return nil, err
	}
	return &Library{t}, nil
}

// OpenTable is for this module's own HCAs in memory: a table that is filled already.
func OpenTable(t driver.Table) *Library { return &Library{t} }

// Path is the file that was loaded.
func (l *Library) Path() string { return l.t.Library() }

// Feature is something that not every libibverbs has.
type Feature int

// The optional features.
const (
	FeatureDeviceIndex      = Feature(driver.SymbolDeviceIndex) // Device.Index
	FeatureGIDTable         = Feature(driver.SymbolGIDTable)    // without it Context.GIDs asks sysfs
	FeatureRelaxedOrdering  = Feature(driver.SymbolRegisterOrd) // without it AccessRelaxedOrdering does nothing
	FeatureDMABuf           = Feature(driver.SymbolDMABuf)      // PD.RegisterDMABuf
	FeatureQueryDataInOrder = Feature(driver.SymbolDataInOrder) // QP.DataInOrder
)

// Has says whether the library has what f needs.
func (l *Library) Has(f Feature) bool { return l.t.Has(driver.Symbol(f)) }

// Devices gives all RDMA devices, at least one. Errors: ErrNoDevice.
//
// Implements: struct ibv_device **ibv_get_device_list(int *num_devices)
func (l *Library) Devices() ([]*Device, error) {
	list, e := l.t.Devices()
	if e != 0 && e != syscall.ENOSYS {
		return nil, &Error{Call: "ibv_get_device_list", Errno: e}
	}
	if len(list) == 0 {
		why := l.t.Absence()
		if why == "" {
			why = "the library lists none"
		}
		return nil, fmt.Errorf("verbs: %w: %s (%s)", ErrNoDevice, why, l.Path())
	}
	all := make([]*Device, len(list))
	for i := range list {
		all[i] = &Device{lib: l, d: list[i]}
	}
	return all, nil
}

// Device gives the device of a name. Errors: ErrNoDevice; one that names those that are there.
func (l *Library) Device(name string) (*Device, error) {
	all, err := l.Devices()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, d := range all {
		if d.d.Name == name {
			return d, nil
		}
		names[i] = d.d.Name
	}
	return nil, fmt.Errorf("verbs: no RDMA device %q: there are %s", name, strings.Join(names, ", "))
}
