package hipfabric

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

func TestEverySettingOutOfRangeIsNamedWithItsValueAndItsBound(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
		want []string // in the message
	}{
		{"name", func(c *Config) { c.Name = "a b" }, []string{"Name", `"a b"`, "letters"}},
		{"long name", func(c *Config) { c.Name = strings.Repeat("x", 65) }, []string{"Name", "1 to 64"}},
		{"world 0", func(c *Config) { c.World = 0 }, []string{"World is 0", "1 to 64"}},
		{"world 65", func(c *Config) { c.World = 65 }, []string{"World is 65", "1 to 64"}},
		{"world -1", func(c *Config) { c.World = -1 }, []string{"World is -1", "1 to 64"}},
		{"rank -1", func(c *Config) { c.Rank = -1 }, []string{"Rank is -1", "0 to 1"}},
		{"rank 2", func(c *Config) { c.Rank = 2 }, []string{"Rank is 2", "0 to 1"}},
		{"local rank", func(c *Config) { c.LocalRank = 2 }, []string{"LocalRank is 2", "0 to 1"}},
		{"no master", func(c *Config) { c.Master = "" }, []string{"Master is empty", "world 2", "host:port"}},
		{"master without port", func(c *Config) { c.Master = "node0" }, []string{`"node0"`, "host:port"}},
		{"master without host", func(c *Config) { c.Master = ":9000" }, []string{`":9000"`, "names no host"}},
		{"master everywhere", func(c *Config) { c.Master = "0.0.0.0:9000" }, []string{`"0.0.0.0:9000"`, "every address"}},
		{"bare IPv6 master", func(c *Config) { c.Master = "fe80::1:9000" }, []string{`"fe80::1:9000"`, "brackets"}},
		{"master port 0", func(c *Config) { c.Master = "node0:0" }, []string{`"node0:0"`, "port"}},
		{"master port 65536", func(c *Config) { c.Master = "node0:65536" }, []string{`"node0:65536"`, "1 to 65535"}},
		{"master file", func(c *Config) { c.Master = "file:" }, []string{`"file:"`, "file:PATH"}},
		{"listen", func(c *Config) { c.Listen = []string{"127.0.0.1:0", " "} }, []string{"Listen", `" "`, "host:port"}},
		{"listen everywhere", func(c *Config) { c.Listen = []string{"[::]:0"} }, []string{"Listen", `"[::]:0"`, "every address"}},
		{"secret", func(c *Config) { c.Secret = []byte("short") }, []string{"Secret has 5 bytes", "16", "keygen"}},
		{"two secrets", func(c *Config) { c.Secret = make([]byte, 16); c.SecretFile = "/s" }, []string{"Secret and SecretFile (/s)", "keep one"}},
		{"timeout", func(c *Config) { c.Timeout = time.Millisecond }, []string{"Timeout is 1ms", "10ms to 24h", "NoTimeout"}},
		{"negative timeout", func(c *Config) { c.Timeout = -time.Second }, []string{"Timeout is -1s", "NoTimeout"}},
		{"long timeout", func(c *Config) { c.Timeout = 25 * time.Hour }, []string{"Timeout is 25h", "24h"}},
		{"open timeout", func(c *Config) { c.OpenTimeout = -1 }, []string{"OpenTimeout is -1ns", "10ms to 24h"}},
		{"heartbeat", func(c *Config) { c.Heartbeat = time.Millisecond }, []string{"Heartbeat is 1ms", "10ms to 10s", "negative one is off"}},
		{"slow heartbeat", func(c *Config) { c.Heartbeat = time.Minute }, []string{"Heartbeat is 1m", "10ms to 10s"}},
		{"verdict busy", func(c *Config) { c.VerdictBusy = 200 * time.Millisecond }, []string{"VerdictBusy is 200ms", "300ms to 1h", "3 heartbeats"}},
		{"verdict idle", func(c *Config) { c.VerdictIdle = time.Millisecond }, []string{"VerdictIdle is 1ms", "1s to 1h", "VerdictBusy"}},
		{"path", func(c *Config) { c.Paths = []string{"ucx"} }, []string{"Paths[0]", `"ucx"`, "there is: tcp, roce"}},
		{"path twice", func(c *Config) { c.Paths = []string{"tcp", "tcp"} }, []string{"Paths[1]", `"tcp"`, "once"}},
		{"eager", func(c *Config) { c.EagerBytes = -1 }, []string{"EagerBytes is -1", "16777216"}},
		{"large eager", func(c *Config) { c.EagerBytes = 1 << 30 }, []string{"EagerBytes is 1073741824", "16777216"}},
		{"window", func(c *Config) { c.Window = 1 }, []string{"Window is 1", "4096 to 1073741824", "-1"}},
		{"negative window", func(c *Config) { c.Window = -2 }, []string{"Window is -2", "-1"}},
		{"spin", func(c *Config) { c.SpinFor = -1 }, []string{"SpinFor is -1ns", "1s"}},
		{"long spin", func(c *Config) { c.SpinFor = time.Minute }, []string{"SpinFor is 1m", "1s"}},
		{"status socket", func(c *Config) { c.StatusSocket = strings.Repeat("x", 91) }, []string{"StatusSocket", "91 bytes", "90"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Rank: 1, World: 2, Master: "node0:9000"}
			require.NoError(t, cfg.Validate(), "before the bad setting")
			c.set(&cfg)
			err := cfg.Validate()
			require.ErrorIs(t, err, fabric.ErrInvalid)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			_, err = Open(t.Context(), cfg)
			var op *fabric.OpError
			require.ErrorAs(t, err, &op)
			assert.Equal(t, "open", op.Op)
			assert.Equal(t, fabric.ScopeCall, op.Scope())
		})
	}
}

func TestSettingsAtTheirBoundsAreTaken(t *testing.T) {
	for name, cfg := range map[string]Config{
		"one rank needs no master": {World: 1},
		"largest world":            {World: 64, Rank: 63, Master: "h:1"},
		"zoned master":             {World: 2, Master: "[fe80::1%eth0]:9000"},
		"master by file":           {World: 2, Master: "file:/tmp/x"},
		"no timeout":               {World: 1, Timeout: NoTimeout},
		"heartbeat off":            {World: 1, Heartbeat: -1},
		"slow verdict":             {World: 1, VerdictBusy: time.Minute},
		"no window":                {World: 1, Window: -1},
		"smallest parts":           {World: 1, PartBytes: 16},
		"no mailbox":               {World: 1, MailboxBytes: NoMailbox},
		"largest mailbox":          {World: 1, MailboxBytes: 1 << 20},
		"largest parts":            {World: 1, PartBytes: 64 << 20},
		"longest secret name":      {World: 1, Name: strings.Repeat("x", 64), Secret: make([]byte, 16)},
	} {
		assert.NoError(t, cfg.Validate(), name)
	}
}

func TestASecretFileIsReadWithoutItsNewline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]string{
		"0123456789abcdef": "0123456789abcdef", "0123456789abcdef\n": "0123456789abcdef",
		"0123456789abcdef\r\n": "0123456789abcdef", "0123456789abcdef\n\n": "0123456789abcdef\n", " 0123456789abcdef \n": " 0123456789abcdef ",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := ReadSecret(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "%q", text)
	}
}

func TestABadSecretFileIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	long := strings.Repeat("x", 32)
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none"), "keygen"},
		{dir, "no regular file"},
		{write("short", "0123456789abcde\n", 0o600), "holds 15 bytes"},
		{write("empty", "", 0o600), "holds 0 bytes"},
		{write("huge", strings.Repeat("x", 70000), 0o600), "longer than 65536"},
		{write("group", long, 0o640), "mode 0640, which lets others use it; run: chmod 600 " + filepath.Join(dir, "group")},
		{write("world", long, 0o604), "mode 0604"},
		{write("a b", long, 0o644), "chmod 600 '" + filepath.Join(dir, "a b") + "'"},
	} {
		_, err := Open(t.Context(), Config{World: 1, SecretFile: c.path})
		require.ErrorIs(t, err, fabric.ErrInvalid, c.path)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, c.path)
	}
}

func TestSpinIsLoweredWhenRanksAreMoreThanCores(t *testing.T) {
	assert.Equal(t, spinPolicy{spinFor: 0, cores: 2}, spin(0, 2, 2), "0 is the path's default")
	assert.Equal(t, spinPolicy{spinFor: time.Millisecond, cores: 2}, spin(time.Millisecond, 1, 2))
	assert.Equal(t, spinPolicy{spinFor: spinWhenShort, yield: true, cores: 2}, spin(0, 3, 2))
	assert.Equal(t, spinPolicy{spinFor: spinWhenShort, yield: true, cores: 2}, spin(time.Millisecond, 3, 2))
	assert.Equal(t, spinPolicy{spinFor: time.Microsecond, yield: true, cores: 2}, spin(time.Microsecond, 3, 2), "never raised")
}

func TestFromEnvFillsAConfig(t *testing.T) {
	for name, value := range map[string]string{launch.Rank: "1", launch.World: "2", launch.LocalRank: "1", launch.Master: "file:/tmp/m",
		launch.SecretFile: "/s", launch.Name: "decode", launch.Listen: "127.0.0.1", launch.Status: "/run/s"} {
		t.Setenv(name, value)
	}
	cfg, err := FromEnv()
	require.NoError(t, err)
	assert.Equal(t, Config{Name: "decode", Rank: 1, World: 2, LocalRank: 1, Master: "file:/tmp/m", Listen: []string{"127.0.0.1"},
		SecretFile: "/s", StatusSocket: "/run/s"}, cfg)
	t.Setenv(launch.Rank, "2")
	_, err = FromEnv()
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestAPipeIsNoSecretFileAndNoMasterFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", "-m", "600", pipe).Run(); err != nil {
		t.Skipf("no mkfifo: %v", err)
	}
	_, err := Open(t.Context(), Config{World: 1, SecretFile: pipe})
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = Open(t.Context(), Config{World: 2, Rank: 1, Master: "file:" + pipe, OpenTimeout: 10 * time.Second})
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestACancelledOpenIsAborted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Config{World: 1})
	assert.ErrorIs(t, err, fabric.ErrAborted)
	assert.ErrorIs(t, err, context.Canceled)
}
