//go:build rxevm && linux

package rxe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/internal/conform"
)

func TestConformance(t *testing.T) {
	for _, check := range conform.List() {
		t.Run(check.Name, func(t *testing.T) {
			require.NoError(t, check.Run(within(t, bound), open(t, "rxe0"), open(t, "rxe1")))
		})
	}
}
