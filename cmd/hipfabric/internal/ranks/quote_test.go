//go:build unix

package ranks

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAShellReadsBackWhatWasQuoted(t *testing.T) {
	for _, s := range []string{"", "a", "a b", "'", "it's", "~", "~root", "$HOME", "`id`", `\`, "a\nb", "*", "#x", "a;b", "!x", "{a,b}", "é", "a=b", "fe80::1%eth0"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+Quote(s)).Output()
		require.NoError(t, err, "%q", s)
		assert.Equal(t, s, string(out))
	}
	assert.Equal(t, "/a/key_1.txt", Quote("/a/key_1.txt"), "a plain word stays readable")
}
