package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clean is a small tree that keeps every rule, close to where each would break.
var clean = map[string]string{
	"go.mod":                       "module example.org/m\n\ngo 1.25.0\n",
	"m.go":                         "// Package m composes.\npackage m\n\nimport (\n\t_ \"example.org/m/fabric\"\n\t_ \"example.org/m/hipgo\"\n\t_ \"example.org/m/verbs\"\n)\n",
	"fabric/doc.go":                "// Package fabric has words.\npackage fabric\n\nimport _ \"unsafe\"\n\nvar names = []string{\"sum\"}\n\nfunc Name(names []string) { names[0] = \"max\" }\n",
	"fabric/seam_test.go":          "package fabric\n\nimport _ \"example.org/m/hipgo\"\n",
	"fabric/launch/doc.go":         "// Package launch reads the environment.\npackage launch\n\nimport \"os\"\n\nfunc Rank() string { return os.Getenv(\"RANK\") }\n",
	"hipgo/doc.go":                 "// Package hipgo binds.\npackage hipgo\n\nimport _ \"example.org/m/hipgo/internal/driver\"\n",
	"hipgo/internal/driver/cgo.go": "// Package driver holds the C.\npackage driver\n\n// int one(void) { return 1; }\nimport \"C\"\n",
	"verbs/doc.go":                 "// Package verbs binds.\npackage verbs\n",
	"cmd/m/main.go":                "// M reads its environment.\npackage main\n\nimport \"os\"\n\nvar home string\n\nfunc init() { home = os.Getenv(\"HOME\") }\n\nfunc main() { println(home) }\n",
	"fabric/testdata/bad.go":       "package util\nfunc  init() {}\n",
}

// unneeded is the go.sum of a module that nothing imports.
const unneeded = "example.com/x v1.0.0/go.mod h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"

// broken changes the clean tree so that exactly the rule it is listed under finds something.
var broken = map[string][]map[string]string{
	"cgo": {
		{"hipgo/shim.go": "package hipgo\n\n// int two(void) { return 2; }\nimport \"C\"\n"},
		{"cmd/m/shim.go": "package main\n\nimport \"C\"\n"},
	},
	"fabric-imports": {
		{"fabric/tcp/doc.go": "// Package tcp moves.\npackage tcp\n\nimport _ \"example.org/m/verbs\"\n"},
		{"fabric/fabrictest/doc.go": "// Package fabrictest tests.\npackage fabrictest\n\nimport _ \"example.org/m\"\n", "m.go": "// Package m is alone.\npackage m\n"},
	},
	"combine": {
		{"verbs/doc.go": "// Package verbs binds.\npackage verbs\n\nimport _ \"example.org/m/fabric\"\n"},
		{"glue/doc.go": "// Package glue joins.\npackage glue\n\nimport (\n\t_ \"example.org/m/fabric\"\n\t_ \"example.org/m/hipgo\"\n)\n"},
	},
	"dependencies": { // tagged, so that go mod tidy looks for no such module
		{"fabric/fabrictest/doc.go": "//go:build ignore\n\n// Package fabrictest tests.\npackage fabrictest\n\nimport _ \"example.com/assert\"\n"},
		{"bench/main.go": "//go:build ignore\n\n// Bench times.\npackage main\n\nimport _ \"example.com/plot\"\n"},
	},
	"fabric-pure": {
		{
			"csrc/c/c.go":   "// Package c is C.\npackage c\n\nimport \"C\"\n",
			"codec/doc.go":  "// Package codec reaches C.\npackage codec\n\nimport _ \"example.org/m/csrc/c\"\n",
			"fabric/one.go": "package fabric\n\nimport _ \"example.org/m/codec\"\n",
		},
	},
	"replace": {
		{"go.mod": "module example.org/m\n\ngo 1.25.0\n\nreplace example.com/x => ./x\n", "x/go.mod": "module example.com/x\n"},
		{"go.mod": "module example.org/m\n\ngo 1.25.0\n\nreplace (\n\texample.com/x => ./x\n\texample.com/y => ./x\n)\n", "x/go.mod": "module example.com/x\n"},
		{"tools/go.mod": "module example.org/m/tools\n\ngo 1.25.0\n\nreplace example.com/x => ./x\n", "tools/x/go.mod": "module example.com/x\n"},
		{"go.mod": "module example.org/m\n\ngo 1.25.0\n\nexclude example.com/x v1.0.0\n"},
	},
	"tidy": {{"go.sum": unneeded}},
	"length": {
		{"verbs/long.go": "package verbs\n" + strings.Repeat("\n// A line.\n", 300)},
		{"docs/long.md": strings.Repeat("A line.\n", 601)},
	},
	"marks":        {{"docs/guide.md": "TO" + "DO: write it.\n"}, {"verbs/fix.go": "package verbs\n\n// FIX" + "ME\n"}},
	"gofmt":        {{"verbs/style.go": "package verbs\nvar  a = 1\n"}, {"verbs/syntax.go": "package verbs\n\nfunc {\n"}},
	"package-name": {{"verbs/util/doc.go": "// Package util is a heap.\npackage util\n"}},
	"package-doc":  {{"verbs/doc.go": "package verbs\n"}},
	"unsafe":       {{"fabric/launch/u.go": "package launch\n\nimport _ \"unsafe\"\n"}},
	"environment": {
		{"fabric/env.go": "package fabric\n\nimport \"os\"\n\nfunc f() string { return os.Getenv(\"X\") }\n"},
		{"m_env.go": "package m\n\nimport sys \"syscall\"\n\nfunc f() []string { return sys.Environ() }\n"},
	},
	"init": {{"hipgo/init.go": "package hipgo\n\nfunc init() {}\n"}},
	"global-state": {
		{"fabric/state.go": "package fabric\n\nvar calls int\n\nfunc f() { calls++ }\n"},
		{"fabric/state.go": "package fabric\n\nfunc f() { names[0] = \"min\" }\n"},
		{"fabric/state.go": "package fabric\n\nimport \"sync\"\n\nvar mu sync.Mutex\n"},
		{"fabric/state.go": "package fabric\n\nimport \"sync/atomic\"\n\nvar p atomic.Pointer[int]\n"},
	},
	"sleep": {
		{"cmd/m/wait.go": "package main\n\nimport \"time\"\n\nfunc wait() { time.Sleep(1) }\n"},
		{"verbs/wait_test.go": "package verbs\n\nimport \"time\"\n\nfunc wait() { time.Sleep(1) }\n"},
	},
}

func plant(t *testing.T, change map[string]string) string {
	root := t.TempDir()
	files := maps.Clone(clean)
	maps.Copy(files, change)
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	return root
}

// brokenRules names the rules that guard finds broken under root, each once.
func brokenRules(t *testing.T, root string) (names []string, told string) {
	var out strings.Builder
	_, err := guard(root, &out)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, r := range rules() {
		if strings.Contains(out.String(), "guard: "+r.name+": ") && !seen[r.name] {
			seen[r.name] = true
			names = append(names, r.name)
		}
	}
	return names, out.String()
}

func offline(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOWORK", "off")
}

func TestACleanTreeKeepsEveryRule(t *testing.T) {
	offline(t)
	names, told := brokenRules(t, plant(t, nil))
	assert.Empty(t, names, told)
	assert.Contains(t, told, "rules hold over")
}

func TestEachRuleFindsItsPlantAndNoOtherDoes(t *testing.T) {
	offline(t)
	for _, r := range rules() {
		require.NotEmpty(t, broken[r.name], "rule %s has no planted tree", r.name)
		for _, change := range broken[r.name] {
			t.Run(r.name, func(t *testing.T) {
				names, told := brokenRules(t, plant(t, change))
				assert.Equal(t, []string{r.name}, names, told)
			})
		}
	}
}

func TestAFolderWithoutAModuleIsAnError(t *testing.T) {
	var out strings.Builder
	_, err := guard(t.TempDir(), &out)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "not a module's root")
}
