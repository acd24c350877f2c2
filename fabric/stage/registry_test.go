package stage

import (
	"slices"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"pgregory.net/rapid"
)

// Whatever overlaps whatever, a range is found exactly where a look at every memory finds it.
func TestMemoryIsFoundWhereItLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r registry
		var all []*memory
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m := &memory{device: uintptr(rapid.IntRange(1, 60).Draw(t, "at")), n: rapid.IntRange(1, 20).Draw(t, "bytes")}
				r.add(m)
				all = append(all, m)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				r.remove(all[i])
				all = slices.Delete(all, i, i+1)
			},
			"": func(t *rapid.T) {
				holds := func(m *memory, p, n int) bool { return m.device <= uintptr(p) && p+n <= int(m.device)+m.n }
				for p := range 84 {
					for n := 1; n <= 21; n++ {
						m := r.find(fabric.DevPtr(p), n)
						if there := slices.ContainsFunc(all, func(m *memory) bool { return holds(m, p, n) }); there != (m != nil) || there && !holds(m, p, n) {
							t.Fatalf("[%d, %d): %+v of %d", p, p+n, m, len(all))
						}
					}
				}
			},
		})
	})
}
