package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What rank 0 sends of an exchange counts once a member, and never before the first exchange.
func TestABlobOfASubGroupCountsOnce(t *testing.T) {
	c := Config{Rank: 1, World: 3, Master: "127.0.0.1:1"}
	s := newSession(c.withDefaults())
	s.places = make([]place, 3)
	hub := &link{peer: 0}
	s.loop = newLoop(s, newSolo(), []*link{hub})
	u, err := s.Sub(SubConfig{Name: "g", Key: "k", Members: []int{1, 0}, Isolated: true})
	require.NoError(t, err)
	hear := func(step uint32, text string) error {
		return s.loop.handle(hub, frameSubGathered, (&subBlob{key: "k", set: 3, step: step, rank: 0, blob: []byte(text)}).encode())
	}
	require.ErrorIs(t, hear(0, "early"), errFrame)
	u.gather = subGathering{step: 1, blobs: make([][]byte, 2)}
	require.NoError(t, hear(1, "first"))
	require.NoError(t, hear(1, "second"))
	require.NoError(t, hear(2, "of no exchange here"))
	assert.Equal(t, [][]byte{nil, []byte("first")}, u.gather.blobs)
}
