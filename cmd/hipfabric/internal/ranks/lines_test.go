package ranks

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinesArePrefixedWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"nothing", nil, ""},
		{"one", []string{"a\n"}, "[0] a\n"},
		{"in pieces", []string{"a", "b", "c\nd\n"}, "[0] abc\n[0] d\n"},
		{"without a last newline", []string{"a\nb"}, "[0] a\n[0] b\n"},
		{"empty lines", []string{"\n\n"}, "[0] \n[0] \n"},
		{"a carriage return stays", []string{"1%\r2%\n"}, "[0] 1%\r2%\n"},
		{"too long", []string{strings.Repeat("x", maxLine+3) + "\n"}, "[0] " + strings.Repeat("x", maxLine) + "\n[0] xxx\n"},
		{"too long in pieces", []string{"ab", strings.Repeat("x", maxLine)}, "[0] ab" + strings.Repeat("x", maxLine-2) + "\n[0] xx\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			l := &lines{to: &sink{w: &out}, prefix: "[0] "}
			for _, w := range c.writes {
				n, err := l.Write([]byte(w))
				assert.NoError(t, err)
				assert.Equal(t, len(w), n)
			}
			l.end()
			assert.True(t, c.want == out.String(), "%.80q", out.String())
		})
	}
}
