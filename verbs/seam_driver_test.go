package verbs_test

import (
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/verbs"
)

var _ roce.Driver = (*verbs.Seam)(nil)
