package hiptest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Library builds the software device as libamdhip64.so.MAJOR, for an engine that loads HIP by a binding of its own, and
// gives the file's path. major is 5, 6 or 7: the soname, the functions there are, the layouts, and the version told. The
// library reads Settings.String from the environment variable SOFTHIP when the process first calls it, has csrc/mailbox's
// kernels, and exports the controls of csrc/softhip/softhip.h beside HIP's functions.
//
// It is built once, by the system's C compiler, and kept in the user's cache folder. Without a compiler, or where this
// package's sources are not at hand (go build -trimpath), t is skipped.
func Library(t testing.TB, major int) string {
	t.Helper()
	if major < 5 || major > 7 {
		t.Fatalf("hiptest: there is no HIP %d; 5, 6 or 7", major)
	}
	cc := compiler()
	if cc == "" {
		t.Skip("hiptest: no C compiler (cc, gcc or clang) to build the software device with")
	}
	root, ok := sources()
	if !ok {
		t.Skip("hiptest: csrc/softhip's sources are not at hand")
	}
	path, err := build(t, cc, root, major)
	if err != nil {
		t.Fatalf("hiptest: building libamdhip64.so.%d: %v", major, err)
	}
	return path
}

func compiler() string {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// sources finds csrc beside this file, in a checkout, a module cache or a vendor folder.
func sources() (root string, ok bool) {
	_, file, _, ok := runtime.Caller(0)
	root = filepath.Join(filepath.Dir(file), "..", "..", "csrc")
	_, err := os.Stat(filepath.Join(root, "softhip", "calls.h"))
	return root, ok && err == nil
}

func build(t testing.TB, cc, root string, major int) (string, error) {
	var units, all []string
	for _, pattern := range []string{"softhip/*.c", "softhip/*.h", "mailbox/*.c", "mailbox/*.h", "mailbox/*.hip"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		all = append(all, found...)
		if strings.HasSuffix(pattern, ".c") {
			units = append(units, found...)
		}
	}
	slices.Sort(units)
	script, err := versionScript(filepath.Join(root, "softhip"), major)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("libamdhip64.so.%d", major)
	flags := []string{
		"-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-DSOFTHIP_SHARED",
		"-DSOFTHIP_MAJOR=" + strconv.Itoa(major), "-Wl,-soname," + name, "-Wl,-Bsymbolic-functions", "-pthread",
	}
	key, err := digest(cc, flags, script, all)
	if err != nil {
		return "", err
	}
	dir, err := folder(t, key)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	made, err := os.MkdirTemp(dir, "build")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	exports := filepath.Join(made, "exports")
	if err := os.WriteFile(exports, []byte(script), 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(made, name)
	args := append(append(slices.Clone(flags), "-Wl,--version-script="+exports, "-o", file), units...)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return path, os.Rename(file, path) // whole or not there: another test may build it too
}

// versionScript exports what HIP of that major has, by the table in calls.h, and softhip's controls.
func versionScript(dir string, major int) (string, error) {
	table, err := os.ReadFile(filepath.Join(dir, "calls.h"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("{ global: softhip_*; hf_*;")
	for line := range strings.Lines(string(table)) {
		call, ok := strings.CutPrefix(strings.TrimSpace(line), "X(")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(call, ", ")
		digits, _, _ := strings.Cut(rest, ")")
		since, err := strconv.Atoi(digits)
		if err != nil {
			return "", fmt.Errorf("calls.h has no version for %s: %w", name, err)
		}
		if since/100 <= major {
			out.WriteString(" " + name + ";")
		}
	}
	out.WriteString(" local: *; };\n")
	return out.String(), nil
}

func digest(cc string, flags []string, script string, files []string) (string, error) {
	h := sha256.New()
	version, err := exec.Command(cc, "--version").Output()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s\n%q\n%s", version, flags, script)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}

func folder(t testing.TB, key string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil { // no HOME
		return t.TempDir(), nil
	}
	dir := filepath.Join(cache, "hipfabric", "softhip-"+key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return t.TempDir(), nil
	}
	return dir, nil
}
