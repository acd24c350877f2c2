// Package build_test holds the scripts beside it to what they promise a user.
package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A machine is a PATH with the named programs only, as links or as small scripts.
type machine struct {
	t   *testing.T
	bin string
	env []string
}

func newMachine(t *testing.T) *machine {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for a Unix shell")
	}
	m := &machine{t: t, bin: t.TempDir()}
	for _, tool := range []string{"sh", "awk", "sed", "sort", "head", "printf", "dirname", "cat", "mktemp", "rm"} {
		m.link(tool)
	}
	m.program("id", "echo 1000")
	m.go_("go1.99.1")
	return m
}

func (m *machine) link(tool string) {
	at, err := exec.LookPath(tool)
	require.NoError(m.t, err)
	require.NoError(m.t, os.Symlink(at, filepath.Join(m.bin, tool)))
}

func (m *machine) program(name, script string) {
	at := filepath.Join(m.bin, name)
	require.NoError(m.t, os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// go_ puts a go command on the machine. Like the real one, an old one fails to read our go.mod.
func (m *machine) go_(version string) {
	m.program("go", `[ "$PWD" = / ] || { echo "go: errors parsing go.mod: invalid go version" >&2; exit 1; }; echo `+version)
}

// setup runs the script; its output is stdout and stderr together.
func (m *machine) setup(purpose string) (out string, code int) {
	cmd := exec.Command("/bin/sh", "setup.sh", purpose)
	cmd.Env = append([]string{"PATH=" + m.bin}, m.env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(m.t, err, &exit)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// needed is the Go version that go.mod asks for.
func needed(t *testing.T) string {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)
	require.NotNil(t, found)
	return string(found[1])
}

func oneLine(t *testing.T, out string) {
	assert.Equal(t, 1, strings.Count(out, "\n"), out)
}

func TestAnOldGoGetsOneLineThatSaysWhatIsNeeded(t *testing.T) {
	for _, version := range []string{"go1.19.8", "go1.24.13", "go1.9"} {
		m := newMachine(t)
		m.go_(version)
		out, code := m.setup("demo")
		assert.Equal(t, 1, code)
		oneLine(t, out)
		assert.Contains(t, out, "found Go "+strings.TrimPrefix(version, "go")+" ")
		assert.Contains(t, out, "needs Go "+needed(t)+" or newer")
		assert.Contains(t, out, "https://go.dev/dl/")
	}
}

func TestNoGoGetsOneLineToo(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, os.Remove(filepath.Join(m.bin, "go")))
	out, code := m.setup("demo")
	assert.Equal(t, 1, code)
	oneLine(t, out)
	assert.Contains(t, out, "no go command on PATH")
}

func TestAGoThatFetchesANewerOneIsGoodEnough(t *testing.T) {
	m := newMachine(t)
	m.program("go", `[ "$PWD" = / ] && echo go1.22.0 || echo go`+needed(t))
	out, code := m.setup("demo")
	assert.Zero(t, code, out)
}

func TestTheDemoNeedsGoAlone(t *testing.T) {
	for _, version := range []string{"go1.99.1", "go1.99rc1", "go" + needed(t), "go1.99.1 X:nogreenteagc"} {
		m := newMachine(t)
		m.go_("'" + version + "'")
		out, code := m.setup("demo")
		assert.Zero(t, code, "%s: %s", version, out)
		oneLine(t, out)
		assert.Contains(t, out, "some parts will be absent", "without a C compiler the device half is")
		m.program("gcc", "cat >/dev/null")
		out, code = m.setup("demo")
		assert.Zero(t, code, "%s: %s", version, out)
		assert.Empty(t, out)
	}
}

func TestACompilerWithoutItsLibraryIsNamed(t *testing.T) {
	m := newMachine(t)
	m.program("gcc", "cat >/dev/null; exit 1")
	m.program("apt-get", "")
	out, code := m.setup("demo")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "libc6-dev")
}

func TestMissingPackagesGetTheCommandOfTheSystem(t *testing.T) {
	for manager, want := range map[string]string{
		"apt-get": "sudo apt-get update && sudo apt-get install -y --no-install-recommends git gcc libc6-dev libibverbs-dev",
		"dnf":     "sudo dnf install -y git gcc glibc-devel rdma-core-devel",
		"pacman":  "sudo pacman -S --needed git gcc glibc rdma-core",
	} {
		m := newMachine(t)
		m.program(manager, "echo it ran; exit 1")
		out, code := m.setup("test")
		assert.Equal(t, 1, code)
		assert.Contains(t, out, want)
		assert.NotContains(t, out, "it ran")
	}
}

// packaged is a machine whose apt-get notes what it was asked, and whose sudo runs what follows.
func packaged(t *testing.T) (m *machine, asked func() string) {
	m = newMachine(t)
	log := filepath.Join(t.TempDir(), "asked")
	m.program("apt-get", `echo "$@" >>`+log)
	m.program("sudo", `exec "$@"`)
	return m, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return ""
		}
		return string(text)
	}
}

func TestSETUPAndCIInstallWhatIsMissing(t *testing.T) {
	for _, env := range []string{"SETUP=1", "CI=true"} {
		m, asked := packaged(t)
		m.env = []string{env}
		out, code := m.setup("test")
		assert.Zero(t, code, out)
		assert.Contains(t, asked(), "update\ninstall -y --no-install-recommends git gcc libc6-dev libibverbs-dev")
	}
}

func TestRootInstallsWhatTheTestsNeedButNoServer(t *testing.T) {
	m, asked := packaged(t)
	m.program("id", "echo 0")
	out, code := m.setup("test")
	assert.Zero(t, code, out)
	assert.Contains(t, asked(), "git gcc libc6-dev libibverbs-dev")
	assert.NotContains(t, asked(), "openssh-server")
}

func TestTheMachineThatTestsBootNeedsDebiansPackages(t *testing.T) {
	for _, purpose := range []string{"shell-rxe", "test-rxe"} {
		m, asked := packaged(t)
		m.program("uname", "echo Linux x86_64")
		m.program("dpkg-deb", "")
		out, code := m.setup(purpose)
		assert.Equal(t, 1, code)
		assert.Contains(t, out, "setup: or let make do it: make "+purpose+" SETUP=1\n")
		m.env = []string{"SETUP=1"}
		out, code = m.setup(purpose)
		assert.Zero(t, code, out)
		for _, p := range []string{"qemu-system-x86", "busybox-static", "cpio", "xz-utils", "ibverbs-utils", "perftest"} {
			assert.Contains(t, asked(), " "+p)
		}
		assert.Equal(t, purpose == "test-rxe", strings.Contains(asked(), " libibverbs-dev"), "what is built there is C too")
	}
}

func TestElsewhereTheMachineIsRefusedInOneLine(t *testing.T) {
	for manager, system := range map[string]string{"dnf": "Linux x86_64", "apt-get": "Linux aarch64", "brew": "Darwin arm64"} {
		m := newMachine(t)
		m.program(manager, "echo it ran; exit 1")
		m.program("dpkg-deb", "")
		m.program("uname", "echo "+system)
		out, code := m.setup("test-rxe")
		assert.Equal(t, 1, code)
		assert.Equal(t, "setup: make test-rxe needs Debian on x86-64 (apt-get and dpkg-deb): its kernel is Debian's\n", out)
	}
}

func TestAnInstallThatFailsEndsWithItsOutputAndTheCommand(t *testing.T) {
	m, _ := packaged(t)
	m.program("apt-get", "echo E: no such host; exit 100")
	m.env = []string{"SETUP=1"}
	out, code := m.setup("test")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "E: no such host")
	assert.Contains(t, out, "run it yourself: sudo apt-get update")
}

func TestAnUnknownPurposeIsUsage(t *testing.T) {
	out, code := newMachine(t).setup("tests")
	assert.Equal(t, 2, code)
	assert.Contains(t, out, "usage: build/setup.sh")
}
