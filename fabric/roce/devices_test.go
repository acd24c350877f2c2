package roce

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// names lists ports as "mlx5_0:1".
func bare(names ...string) []Port {
	var ports []Port
	for _, n := range names {
		device, port, _ := strings.Cut(n, ":")
		ports = append(ports, Port{Device: device, Port: int(port[0] - '0'), Active: true, State: "active", Ethernet: true, MTU: 4096})
	}
	return ports
}

func TestDevicesChooseExcludeAndOrder(t *testing.T) {
	ports := bare("mlx5_0:1", "mlx5_0:2", "mlx5_1:1", "mlx5_10:1", "rxe_eth0:1")
	for _, tc := range []struct {
		devices []string
		want    string
	}{
		{nil, "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1 rxe_eth0:1"},
		{[]string{"mlx5"}, "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1"},
		{[]string{"mlx5_1"}, "mlx5_1:1 mlx5_10:1"},
		{[]string{"=mlx5_1"}, "mlx5_1:1"},
		{[]string{"=mlx5_1:1"}, "mlx5_1:1"},
		{[]string{"mlx5_0:2"}, "mlx5_0:2"},
		{[]string{"mlx5:1"}, "mlx5_0:1 mlx5_1:1 mlx5_10:1"},
		{[]string{"rxe", "mlx5_0"}, "rxe_eth0:1 mlx5_0:1 mlx5_0:2"},
		{[]string{"=mlx5_1", "mlx5"}, "mlx5_1:1 mlx5_0:1 mlx5_0:2 mlx5_10:1"},
		{[]string{"^mlx5"}, "rxe_eth0:1"},
		{[]string{"^mlx5_0:2", "^rxe"}, "mlx5_0:1 mlx5_1:1 mlx5_10:1"},
		{[]string{"^=mlx5_1"}, "mlx5_0:1 mlx5_0:2 mlx5_10:1 rxe_eth0:1"},
		{[]string{"mlx5", "^mlx5_1"}, "mlx5_0:1 mlx5_0:2"},
		{[]string{"^bnxt"}, "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1 rxe_eth0:1"},
	} {
		list, err := parseDevices(tc.devices)
		require.NoError(t, err, "%q", tc.devices)
		chosen, left, err := list.pick(ports)
		require.NoError(t, err, "%q", tc.devices)
		var got []string
		for i := range chosen {
			got = append(got, chosen[i].name())
		}
		assert.Equal(t, tc.want, strings.Join(got, " "), "%q", tc.devices)
		said := strings.Join(left, "; ")
		for _, p := range portNames(ports) {
			assert.NotEqual(t, strings.Contains(tc.want+" ", p+" "), strings.Contains(said+" ", p+" "), "%q: %s is chosen, or its reason is told: %s", tc.devices, p, said)
		}
	}
	list, err := parseDevices([]string{"mlx5", "^=mlx5_1", "^bnxt"})
	require.NoError(t, err)
	_, left, err := list.pick(ports)
	require.NoError(t, err)
	assert.Equal(t, []string{`mlx5_1:1 is excluded by HCAs[1] "^=mlx5_1"`, "rxe_eth0:1 is not in HCAs", `HCAs[2] "^bnxt" excludes nothing that is there`}, left)
}

func TestDevicesThatFindNothingAreRefused(t *testing.T) {
	ports := bare("mlx5_0:1", "mlx5_1:1", "mlx5_1:2")
	for _, tc := range []struct {
		devices []string
		want    string
	}{
		{[]string{"mlx4_0"}, `HCAs[0] "mlx4_0": there is no such device; did you mean mlx5_0? There are: mlx5_0, mlx5_1`},
		{[]string{"mlx5", "=mlx_1"}, `HCAs[1] "=mlx_1": there is no such device; did you mean mlx5_1? There are: mlx5_0, mlx5_1`},
		{[]string{"bnxt_re0"}, `HCAs[0] "bnxt_re0": there is no such device; there are: mlx5_0, mlx5_1`},
		{[]string{"=mlx5_1:3"}, `HCAs[0] "=mlx5_1:3": there is no such port; there are: mlx5_1:1, mlx5_1:2`},
		{[]string{"^mlx5"}, `HCAs ["^mlx5"] leaves no port; there are: mlx5_0:1, mlx5_1:1, mlx5_1:2`},
		{[]string{"mlx5_0", "^mlx5_0:1"}, `HCAs ["mlx5_0" "^mlx5_0:1"] leaves no port`},
	} {
		list, err := parseDevices(tc.devices)
		require.NoError(t, err)
		_, _, err = list.pick(ports)
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, tc.want)
	}
}

func TestABadDeviceIsNamed(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", `HCAs[1] is "": it names nothing`},
		{"^", "it names nothing"},
		{"=", "it names nothing"},
		{"^=", "it names nothing"},
		{":1", "no device has such a name"},
		{"=:1", "no device has such a name"},
		{"a b", "no device has such a name"},
		{"a,b", "no device has such a name"},
		{"==a", "no device has such a name"},
		{"a^", "no device has such a name"},
		{"mlx5_é", "no device has such a name"},
		{strings.Repeat("x", 64), "no device has such a name"},
		{strings.Repeat("x", 81), "it has 81 bytes, and at most 80 are allowed"},
		{"a:1:2:3", "it has 4 parts"},
		{"a:", `port "" is not in 1..255`},
		{"a:0", `port "0" is not in 1..255`},
		{"a:256", `port "256" is not in 1..255`},
		{"a:x", `port "x" is not in 1..255`},
		{"a:1:", `GID index "" is not in 0..65535`},
		{"a:1:-1", `GID index "-1" is not in 0..65535`},
		{"a:1:65536", `GID index "65536" is not in 0..65535`},
		{"^a:1:3", "a GID cannot be excluded by its index"},
	} {
		_, err := parseDevices([]string{"mlx5", tc.text})
		require.ErrorIs(t, err, fabric.ErrInvalid, tc.text)
		assert.ErrorContains(t, err, tc.want)
		assert.ErrorContains(t, err, devicesForms)
	}
}

func TestListsAreBounded(t *testing.T) {
	many := make([]string, 500)
	for i := range many {
		many[i] = "mlx5_123:1"
	}
	assert.LessOrEqual(t, len(listed(many)), maxListed+len(", and 500 more"))
	assert.Contains(t, listed(many), "more")
	assert.Equal(t, "none", listed(nil))
	assert.Equal(t, "a, b", listed([]string{"a", "b"}))
}
