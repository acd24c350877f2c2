package launch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestACompleteSetIsAnIdentity(t *testing.T) {
	id, err := From([]string{"HOME=/x", "HIPFABRIC_RANK=2", "HIPFABRIC_WORLD=4", "HIPFABRIC_LOCAL_RANK=1", "HIPFABRIC_MASTER=[fe80::1%eth0]:9000",
		"HIPFABRIC_SECRET_FILE=/s", "HIPFABRIC_NAME=decode", "HIPFABRIC_LISTEN=10.0.0.2:0,10.0.1.2:0", "HIPFABRIC_STATUS=/run/h.sock", "HIPFABRIC_TEST_GPU=0"})
	require.NoError(t, err)
	assert.Equal(t, Identity{Rank: 2, World: 4, LocalRank: 1, Master: "[fe80::1%eth0]:9000", SecretFile: "/s", Name: "decode",
		Listen: []string{"10.0.0.2:0", "10.0.1.2:0"}, StatusSocket: "/run/h.sock", Source: "the HIPFABRIC_* variables"}, id)
}

func TestOneRankNeedsNoMaster(t *testing.T) {
	id, err := From([]string{"HIPFABRIC_RANK=0", "HIPFABRIC_WORLD=1"})
	require.NoError(t, err)
	assert.Equal(t, 1, id.World)
	assert.Empty(t, id.Master)
}

func TestNoVariableIsErrNone(t *testing.T) {
	_, err := From([]string{"HOME=/x", "HIPFABRIC_TEST_GPU=0"})
	require.ErrorIs(t, err, ErrNone)
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "hipfabric run")
}

func TestABadSetNamesTheVariableTheValueAndTheBound(t *testing.T) {
	good := []string{"HIPFABRIC_RANK=1", "HIPFABRIC_WORLD=2", "HIPFABRIC_MASTER=h:1"}
	for _, c := range []struct {
		name string
		set  []string
		want []string
	}{
		{"rank missing", []string{"HIPFABRIC_WORLD=2", "HIPFABRIC_MASTER=h:1"}, []string{"HIPFABRIC_RANK", "not set", "0..1"}},
		{"rank empty", append(good, "HIPFABRIC_RANK="), []string{"HIPFABRIC_RANK", "not set", "0..1"}},
		{"world missing", []string{"HIPFABRIC_RANK=0"}, []string{"HIPFABRIC_WORLD", "not set", "1..64"}},
		{"master missing", []string{"HIPFABRIC_RANK=0", "HIPFABRIC_WORLD=2"}, []string{"HIPFABRIC_MASTER", "HIPFABRIC_WORLD 2", "host:port"}},
		{"only a secret", []string{"HIPFABRIC_SECRET_FILE=/s"}, []string{"HIPFABRIC_WORLD", "not set"}},
		{"rank no number", append(good, "HIPFABRIC_RANK=one"), []string{"HIPFABRIC_RANK", `"one"`, "0..1"}},
		{"rank huge", append(good, "HIPFABRIC_RANK=99999999999999999999"), []string{"HIPFABRIC_RANK", "99999999999999999999", "0..1"}},
		{"rank negative", append(good, "HIPFABRIC_RANK=-1"), []string{"HIPFABRIC_RANK is -1", "0..1"}},
		{"rank is world", append(good, "HIPFABRIC_RANK=2"), []string{"HIPFABRIC_RANK is 2", "0..1"}},
		{"world 0", append(good, "HIPFABRIC_WORLD=0"), []string{"HIPFABRIC_WORLD is 0", "1..64"}},
		{"world 65", append(good, "HIPFABRIC_WORLD=65"), []string{"HIPFABRIC_WORLD is 65", "1..64"}},
		{"local rank", append(good, "HIPFABRIC_LOCAL_RANK=2"), []string{"HIPFABRIC_LOCAL_RANK is 2", "0..1"}},
		{"misspelt", append(good, "HIPFABRIC_MASTR=h:1"), []string{"HIPFABRIC_MASTR", "did you mean HIPFABRIC_MASTER?"}},
		{"shortened", append(good, "HIPFABRIC_SECRETFILE=/s"), []string{"did you mean HIPFABRIC_SECRET_FILE?"}},
		{"unknown", append(good, "HIPFABRIC_COMPRESSION=1"), []string{"HIPFABRIC_COMPRESSION", "unset it", "HIPFABRIC_WORLD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := From(c.set)
			require.ErrorIs(t, err, fabric.ErrInvalid)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestFindReadsThisProcess(t *testing.T) {
	t.Setenv(Rank, "0")
	t.Setenv(World, "1")
	id, err := Find()
	require.NoError(t, err)
	assert.Equal(t, 1, id.World)
}
