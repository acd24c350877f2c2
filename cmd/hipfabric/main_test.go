package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary hipfabric itself, so that the commands that start their own program can be tested.
const asProgram = "HIPFABRIC_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	_ = os.Setenv(asProgram, "1") // for the processes that tests start; never the tests again
	os.Exit(m.Run())
}

// command runs a command line in this process.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(args, &out, &err)
	return code, out.String(), err.String()
}

func TestBadCommandLinesGetOneClearLine(t *testing.T) {
	for line, want := range map[string]string{
		"perff":                                 `unknown command "perff"; did you mean perf?`,
		"zzz":                                   `unknown command "zzz"; these are: completion, demo, doctor, keygen, perf, run, status, version`,
		"perf --opp x":                          "hipfabric perf has no flag --opp; did you mean --copy or --op?",
		"run --hots a -- x":                     "hipfabric run has no flag --hots; did you mean --hosts?",
		"perf -Z":                               "unknown shorthand flag: 'Z'",
		"perf --iters x":                        `invalid argument "x" for "--iters" flag`,
		"perf collectiv":                        `"collectiv" is no subject to measure; did you mean collective?`,
		"perf all-reduce -n 2":                  "an operation is written --op all-reduce",
		"perf --listen 10.0.0.1":                "an address to listen at is written --listen=10.0.0.1",
		"perf -n 2 --op allgather":              `unknown operation "allgather"; did you mean all-gather?`,
		"perf -n 2 --op recv":                   "--op send measures both",
		"perf -n 2 --op zzzz":                   `unknown operation "zzzz"; these are: all-reduce, `,
		"perf -n 2 --dtype f31":                 `unknown dtype "f31"; did you mean`,
		"perf -n 2 --redop summ":                `unknown redop "summ"; did you mean sum?`,
		"perf -n 2 --redop avg --dtype i32":     "redop avg of dtype i32",
		"perf -n 2 --kind tcpp":                 `unknown kind "tcpp"; did you mean tcp?`,
		"perf -n 2 --kind staged --over rose":   `unknown path "rose" in --over; did you mean roce?`,
		"perf -n 2 --over roce":                 "--over belongs to --kind staged",
		"perf -n 2 --kind staged --mailbox off": "--mailbox belongs to --kind staged --over roce; --kind is staged, over tcp",
		"perf -n 2 --kind staged --over roce --mailbox most": `--mailbox is "most"; bytes, as 64K, 0 for the default, or off`,
		"perf -n 2 --hca =mlx5_0":                            "--hca belongs to roce; --kind is tcp, over tcp",
		"perf -n 2 --kind roce --traffic-class 256":          "TrafficClass is 256",
		"perf -n 2 --kind roce --hca mlx5_0:0":               "HCAs",
		"perf -n 2 --sizes 4X":                               `size "4X" is no number of bytes`,
		"perf -n 2 -b 8 --sizes 4":                           "exclude each other",
		"perf -n 2 -b 8 -e 4":                                "begin at 8 and end at 4",
		"perf -n 2 -b 8 -e 16 -f 1":                          "factor 1 is outside",
		"perf -n 2 --iters 0":                                "iters is 0, outside 1..",
		"perf -n 2 --warmup -1":                              "warmup is -1, outside 0..",
		"perf -n 65":                                         "-n is 65, outside 1..64",
		"perf -n -1":                                         "-n is -1, outside 1..64",
		"perf -n 0":                                          "-n is 0, outside 1..64",
		"perf -n 2 --eager -4":                               `--eager is "-4"; bytes, as 32K`,
		"perf -n 2 --eager 32M":                              "EagerBytes",
		"perf -n 2 --window x":                               `--window is "x"; bytes, as 256K, 0 for the default, or -1 for no bound`,
		"perf -n 2 --lanes x":                                `--lanes is "x"; 1 to 64, 0 for the default, or auto`,
		"perf -n 2 --lanes -1":                               `--lanes is "-1"`,
		"perf -n 2 --lanes 65":                               "Lanes is 65; 1 to 64",
		"perf -n 2 --sockbuf x":                              `--sockbuf is "x"; bytes, as 64K, or auto`,
		"perf -n 2 --sockbuf 16":                             "SocketBuffer is 16; 4096 to",
		"perf -n 2 --window 16":                              "Window is 16; 4096 to",
		"perf -n 2 --rails ^":                                "Rails[0]",
		"perf -n 2 --gate words":                             "--gate belongs to --kind staged",
		"perf -n 2 --device hip:0":                           "--device belongs to --kind staged",
		"perf -n 2 --library x":                              "--library belongs to --kind staged",
		"perf -n 2 --part 4K":                                "--part belongs to --kind staged",
		"perf -n 2 --kind stage":                             `unknown kind "stage"; did you mean staged?`,
		"perf -n 2 --kind staged --gate word":                `unknown gate "word"; did you mean words?`,
		"perf -n 2 --kind staged --device hip":               `--device is "hip"; auto, software, or hip:N or cuda:N`,
		"perf -n 2 --kind staged --device hip:-1":            `--device is "hip:-1"`,
		"perf -n 2 --kind staged --device cuda:x":            `--device is "cuda:x"`,
		"perf -n 2 --kind staged --part x":                   `--part is "x"; bytes, as 512K`,
		"perf -n 2 --kind staged --part 100":                 "PartBytes is 100; a multiple of 16, 16 to 67108864",
		"perf -n 2 --kind staged --part 65M":                 "PartBytes is 68157440",
		"doctor hip x":                                       `hip takes no argument, and "x" is one`,
		"doctor hip --timeout 0s":                            "--timeout is 0s; it must be above 0",
		"doctor hip --bound 1s":                              "--bound belongs to --conform",
		"doctor hop":                                         "did you mean hip?",
		"perf -n 1 --op exchange":                            "exchange needs two ranks",
		"perf -n 2 --rank 1":                                 "excludes --rank",
		"perf -n 2 --kill-rank 1":                            "give both",
		"perf -n 2 --kill-after 0s":                          "--kill-after is 0s; it must be above 0",
		"perf -n 2 --kill-after 1s --kill-rank 2":            "the rank to kill is 2",
		"perf -n 2 --suite --op barrier":                     "it excludes --op",
		"perf -n 2 --json x --raw x":                         "--json and --raw both name x",
		"perf -n 2 --kill-after 1s --suite":                  "exclude each other",
		"perf":                                               "this process is no rank yet: give -n N",
		"perf --rank 2 --world 2 --master 127.1:1":           "Rank is 2",
		"perf --rank 1 --world 2":                            "Master",
		"perf --rank 0 --world 1 --eager 32M":                "EagerBytes",
		"perf --listen=127.0.0.1 --world 1":                  "--world is 1; to wait for other hosts it must be 2 to 64",
		"perf --listen=127.0.0.1:99999":                      `port "99999" of "127.0.0.1:99999" is outside 1..65535`,
		"perf --listen=127.0.0.1 --rank 1":                   "excludes --rank",
		"perf --listen=10.1.1.1":                             "run hipfabric keygen",
		"run":                                                "how many ranks?",
		"run -n 2":                                           "no command to run; write it after --",
		"run -n 0 -- true":                                   "0 ranks are outside 1..64",
		"run -n 2 --hosts a -- true":                         "exclude each other",
		"run -n 2 --port 5 -- true":                          "--port belongs to --hosts",
		"run -n 2 --grace 0s -- true":                        "--grace is 0s",
		"run -n 2 --env =x -- true":                          "is no name of an environment variable",
		"run --hosts a --port 0 -- true":                     "--port is 0, outside 1..65535",
		"run --hosts a:0 -- true":                            `"0" is no number of ranks`,
		"run --hosts -a -- true":                             "is no host name",
		"run --hosts a --master :5 -- true":                  "has no host",
		"keygen a b":                                         `"b" is a second`,
		"version x":                                          `version takes no argument, and "x" is one`,
		"demo x":                                             "demo takes no argument",
		"status /nowhere/at-all.sock":                        "/nowhere/at-all.sock",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, err := command(strings.Fields(line)...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, out)
			assert.Contains(t, err, want)
			if !strings.Contains(line, "=10.") && !strings.HasPrefix(line, "perf --listen=127") {
				assert.Equal(t, 1, strings.Count(err, "\n"), "one line: %s", err)
			}
		})
	}
}

func TestHelpNamesWhatThereIs(t *testing.T) {
	for args, want := range map[string][]string{
		"":       {"demo", "run", "perf", "status", "doctor", "keygen", "version", "completion", "Exit codes: 0 ok"},
		"run -h": {"HIPFABRIC_RANK", "HIPFABRIC_WORLD", "HIPFABRIC_LOCAL_RANK", "HIPFABRIC_MASTER", "HIPFABRIC_SECRET_FILE", "HIPFABRIC_STATUS", "--hosts", "--port", "--ssh", "--env", "--grace", "-n"},
		"perf -h": {"--op", "--sizes", "--dtype", "--redop", "--iters", "--warmup", "--check", "--json", "--raw", "--label", "--kind", "--listen", "--suite", "--kill-after", "-b", "-e", "-f", "-w", "-n",
			"--lanes", "--rails", "--window", "--sockbuf", "--in-place", "--device", "--gate", "--part", "--library", "--receipt", "--over", "--hca", "--mailbox"},
		"doctor -h":       {"links", "--peer", "--listen", "hip"},
		"doctor links -h": {"--peer", "--listen", "--json"},
		"doctor hip -h":   {"--json", "--library", "beta"},
		"keygen -h":       {"--force", "FILE|-"},
		"status -h":       {"--json"},
	} {
		code, out, _ := command(strings.Fields(args)...)
		assert.Equal(t, exitOK, code)
		for _, w := range want {
			assert.Contains(t, out, w)
		}
		assert.NotContains(t, out, "as-rank")
	}
}

func TestCompletionIsThere(t *testing.T) {
	code, out, _ := command("completion", "bash")
	require.Equal(t, exitOK, code)
	assert.Contains(t, out, "hipfabric")
	_, out, _ = command("__complete", "perf", "--redop", "m")
	assert.Contains(t, out, "max\nmin\n")
}
