package hipfabric

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/fabric/tcp"
	"github.com/hipfabric/hipfabric/verbs"
)

// everySetting has no field at its zero value, nor at its default.
func everySetting(t *testing.T) Config {
	c := Config{Name: "decode", Rank: 1, World: 3, LocalRank: 2, Master: "h:9000", Listen: []string{"h:1"}, SecretFile: "/s",
		Secret: make([]byte, 16), Insecure: true, Timeout: 2 * time.Second, OpenTimeout: 3 * time.Second, Heartbeat: 20 * time.Millisecond,
		VerdictBusy: 300 * time.Millisecond, VerdictIdle: 4 * time.Second, Paths: []string{"tcp"}, EagerBytes: 4096, Window: 8192, PartBytes: 1 << 20,
		Rails: []string{"=eth7"}, Lanes: 3, LaneCache: "/lanes", SocketBuffer: 65536, SpinFor: time.Microsecond, Verify: true,
		HCAs: []string{"=mlx5_1"}, TrafficClass: 104, MailboxBytes: 8192, RDMA: &verbs.Library{}, StatusSocket: "/x", Logger: slog.New(slog.DiscardHandler)}
	for i, v := 0, reflect.ValueOf(c); i < v.NumField(); i++ {
		require.False(t, v.Field(i).IsZero(), "%s: give it a value, and say below where it arrives", v.Type().Field(i).Name)
	}
	return c
}

func TestEverySettingReachesWhatItConfigures(t *testing.T) {
	c := everySetting(t)
	assert.Equal(t, bootstrap.Config{Group: "decode", Rank: 1, World: 3, Master: "h:9000", Listen: []string{"h:1"}, Rails: []string{"=eth7"}, Secret: c.Secret,
		Insecure: true, OpenTimeout: 3 * time.Second, Heartbeat: 20 * time.Millisecond, VerdictBusy: 300 * time.Millisecond,
		VerdictIdle: 4 * time.Second, Logger: c.Logger, Settings: []bootstrap.Setting{{Name: "Timeout", Value: "2s"},
			{Name: "Paths", Value: "tcp"}, {Name: "EagerBytes", Value: "4096"}, {Name: "Window", Value: "8192"},
			{Name: "PartBytes", Value: "1048576"}, {Name: "MailboxBytes", Value: "8192"}, {Name: "Verify", Value: "true"}, {Name: "LanesAuto", Value: "false"}}}, bootstrapConfig(&c))
	assert.Equal(t, tcp.Config{Group: "decode", Channel: "host", EagerBytes: 4096, Window: 8192, Lanes: 3, SocketBuffer: 65536,
		LaneCache: laneFile("/lanes"), SpinFor: time.Microsecond, Yield: true,
		Verify: true, Logger: c.Logger}, tcpConfig(&c, spinPolicy{spinFor: c.SpinFor, yield: true}))
	r := roceConfig(&c, nil, "host", spinPolicy{spinFor: c.SpinFor, yield: true})
	assert.NotNil(t, r.Failed)
	r.Failed = nil
	assert.Equal(t, roce.Config{Group: "decode", Channel: "host", HCAs: []string{"=mlx5_1"}, EagerBytes: 4096, SlotBytes: roce.DefaultSlotBytes,
		TrafficClass: 104, Timeout: 2 * time.Second, SpinFor: time.Microsecond, Yield: true, Verify: true, Logger: c.Logger}, r)
	assert.IsType(t, c.RDMA.Seam(), rdma(c.RDMA))
}

func TestAGroupJudgesSilenceByItsOwnVerdict(t *testing.T) {
	groups := opened(t, 2, func(c *Config) {
		c.Heartbeat, c.VerdictBusy = 20*time.Millisecond, 300*time.Millisecond
	})
	stopped := make(chan struct{})
	defer close(stopped)
	groups[1].session.Watch(func() fabric.Progress { <-stopped; return fabric.Progress{Peer: -1} }, nil) // as SIGSTOP does
	err := groups[0].Host().Barrier()
	require.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "no sign of life for 300ms while a call waited for it")
}
