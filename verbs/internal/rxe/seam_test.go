//go:build rxevm && linux

package rxe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
)

func seam(t testing.TB) *verbs.Seam {
	t.Helper()
	lib, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	return lib.Seam()
}

func stations(t testing.TB) (a, b *conform.Station) {
	t.Helper()
	var ends [2]*conform.Station
	for i := range ends {
		e, err := conform.NewStation(within(t, bound), seam(t), []string{"rxe0", "rxe1"}[i])
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.End()) })
		ends[i] = e
	}
	require.NoError(t, ends[0].Join(ends[1]))
	require.NoError(t, ends[1].Join(ends[0]))
	return ends[0], ends[1]
}

func TestASeamConforms(t *testing.T) {
	s := seam(t)
	require.NoError(t, conform.Seams(within(t, bound), s, seam(t), "rxe0", "rxe1"))
	assert.Zero(t, s.Left())
}

func TestASeamListsPorts(t *testing.T) {
	ports, err := seam(t).Ports()
	require.NoError(t, err)
	require.Len(t, ports, 2)
	for i, p := range ports {
		assert.Equal(t, []any{[]string{"rxe0", "rxe1"}[i], 1, true, "active", true, 4096}, []any{p.Device, p.Port, p.Active, p.State, p.Ethernet, p.MTU})
		assert.NotZero(t, p.Rate)
		require.Len(t, p.GIDs, 2)
		assert.Equal(t, []any{2, []string{"eth_a", "eth_b"}[i]}, []any{p.GIDs[1].Version, p.GIDs[1].NetDev})
	}
}
