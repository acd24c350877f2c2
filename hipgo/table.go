package hipgo

import "github.com/hipfabric/hipfabric/hipgo/internal/driver"

// Table is for this module's own checks of a runtime: calls with flags that hipgo never passes.
func (r *Runtime) Table() *driver.Table { return r.t }
