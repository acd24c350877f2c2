package mailbox_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compile builds a program of testdata with the C compiler against the sources in dir, and returns how to run it.
func compile(t *testing.T, dir, program string, options ...string) func() (string, error) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here; on Debian: apt-get install gcc libc6-dev")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	binary := filepath.Join(t.TempDir(), program)
	options = append([]string{"-std=c11", "-pthread", "-I" + dir, "-I" + filepath.Join(dir, "testdata")}, options...)
	out, err := exec.CommandContext(ctx, gcc, append(options, "-o", binary, filepath.Join(dir, "testdata", program+".c"))...).CombinedOutput()
	if err != nil && strings.Contains(string(out), "cannot find") {
		t.Skipf("the C compiler lacks a sanitizer: %s", out)
	}
	require.NoError(t, err, "%s", out)
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, binary).CombinedOutput()
		return string(out), err
	}
}

var strict = []string{"-O1", "-g", "-Wall", "-Wextra", "-Werror"}

func TestThePromisesHoldOnWeakMemory(t *testing.T) {
	for _, program := range []string{"checks", "calls"} {
		out, err := compile(t, ".", program, append(strict, "-fsanitize=address,undefined", "-fno-sanitize-recover")...)()
		require.NoError(t, err, "%s: %s", program, out)
		assert.Contains(t, out, "PASS")
	}
}

func TestTheWordsOrderWhatThreadsShare(t *testing.T) {
	for _, program := range []string{"threads", "ranks"} {
		out, err := compile(t, ".", program, append(strict, "-Wno-tsan", "-fsanitize=thread")...)()
		require.NoError(t, err, "%s: %s", program, out)
		assert.Contains(t, out, "PASS 0 wrong bytes")
	}
}

// A control is a guard of the kernels, taken out; what must notice, and by which check.
type control struct {
	name, file, guard, without string
	program, notices           string
}

var controls = []control{
	{"input is carried out before ready", "mailbox.hip", "hf_release_system(); /*", "/*", "checks", "stage_publishes_last"},
	{"descriptor before ready", "mailbox.hip", "            host->descriptor[sequence % HF_RING] = args->descriptor;\n            hf_store_system(&host->ready[sequence % HF_RING], sequence);\n",
		"            hf_store_system(&host->ready[sequence % HF_RING], sequence);\n            host->descriptor[sequence % HF_RING] = args->descriptor;\n", "checks", "stage_publishes_last"},
	{"the last block publishes", "mailbox.hip", "hf_arrive_device(&device->stage_arrived, HF_BLOCKS)", "HF_BLOCK == 0", "checks", "stage_publishes_last"},
	{"the result is fetched anew", "mailbox.hip", "hf_acquire_system(); /*", "/*", "checks", "collect_waits_for_done"},
	{"the wait on done", "mailbox.hip", "return hf_wait(args, epoch - args->back, epoch - args->back) ? epoch - args->back : 0;", "return epoch - args->back;", "checks", "collect_waits_for_done"},
	{"the wait for the window", "mailbox.hip", "args->pieces || args->lengths ? HF_WINDOWS : HF_RING", "HF_RING", "checks", "stage_waits_for_its_window"},
	{"the wait for the slot", "mailbox.hip", "if (sequence > lag && !hf_wait(args, sequence, sequence - lag))", "if (args->pieces && sequence > lag && !hf_wait(args, sequence, sequence - lag))", "checks", "stage_waits_for_its_slot"},
	{"a later lap is done too", "mailbox.hip", "if (done >= awaited)", "if (done == awaited)", "checks", "a_later_lap_is_done_too"},
	{"the bit of a failure", "mailbox.hip", "if (done & HF_FAILED)", "if (0)", "checks", "a_failed_call_copies_nothing"},
	{"the reason of a failure", "mailbox.hip", "reason - 1 < HF_REASON_END - 1 ? reason : (hf_u64)HF_REASON_CALL", "HF_REASON_CALL", "checks", "a_released_plan_is_named"},
	{"a reason that is not ours", "mailbox.hip", "reason - 1 < HF_REASON_END - 1 ? reason : (hf_u64)HF_REASON_CALL", "reason", "checks", "an_unknown_reason_is_a_failed_call"},
	{"the look at abort", "mailbox.hip", "if (hf_load_system(&host->abort))", "if (0)", "checks", "abort_ends_a_wait"},
	{"done before abort", "mailbox.hip", "if (done >= awaited)", "if (done >= awaited && !hf_load_system(&host->abort))", "checks", "what_is_done_is_collected_in_spite_of_abort"},
	{"the bound on time", "mailbox.hip", "if (limit && ", "if (0 && ", "checks", "a_wait_ends_in_its_time"},
	{"no bound where none is asked for", "mailbox.hip", "if (limit && ", "if (", "checks", "no_timeout_waits"},
	{"a clock that steps back", "mailbox.hip", "now > start && ", "", "checks", "a_clock_that_steps_back_ends_nothing"},
	{"stage looks at poison", "mailbox.hip", "    if (hf_load_device(&device->poison))\n        return 0;\n    if (sequence > lag", "    if (sequence > lag", "checks", "a_wait_ends_in_its_time"},
	{"collect looks at poison", "mailbox.hip", "if (hf_load_device(&device->poison) || epoch <= args->back)", "if (epoch <= args->back)", "checks", "a_wait_ends_in_its_time"},
	{"a failure is kept", "mailbox.hip", "if (hf_claim_device(&device->poison, failure))", "", "checks", "abort_ends_a_wait"},
	{"a failed block does not arrive", "mailbox.hip", "    if (sequence == 0) /* this block never arrives, so no block is the last: nothing is published */\n        return;\n",
		"    if (sequence == 0)\n        sequence = device->epoch + 1;\n", "checks", "one_failed_block_is_enough"},
	{"a collect without a stage", "mailbox.hip", " || epoch <= args->back", "", "checks", "collect_before_any_stage_is_nothing"},
	{"a collect one behind", "mailbox.hip", "return hf_wait(args, epoch - args->back, epoch - args->back) ? epoch - args->back : 0;", "return hf_wait(args, epoch, epoch) ? epoch : 0;", "checks", "collect_may_be_one_behind"},
	{"ready releases", "platform_host.h", "__atomic_store_n(p, v, __ATOMIC_RELEASE)", "__atomic_store_n(p, v, __ATOMIC_RELAXED)", "threads", "data race"},
	{"done is acquired", "platform_host.h", "__atomic_load_n(p, __ATOMIC_ACQUIRE)", "__atomic_load_n(p, __ATOMIC_RELAXED)", "threads", "data race"},
}

func TestTheDocumentListsEachControl(t *testing.T) {
	for document, planted := range map[string][]control{"kernels.md": controls, "mailbox.md": callControls} {
		text, err := os.ReadFile("../../docs/" + document)
		require.NoError(t, err)
		for _, c := range planted {
			assert.Contains(t, string(text), "| "+c.name+" | "+c.notices+" |\n")
		}
		_, table, _ := strings.Cut(string(text), "| guard | check that misses it |\n|---|---|\n")
		assert.Equal(t, len(planted), strings.Count(table, "|\n"), "rows of the table of %s", document)
	}
}

// Each guard is taken out of a copy of the sources; that the copy then fails shows that the checks can.
func TestEachGuardIsMissedByItsCheck(t *testing.T) {
	for _, c := range slices.Concat(controls, callControls) {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(".")))
			file := filepath.Join(dir, c.file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), c.guard), "the guard is in %s, once", c.file)
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), c.guard, c.without, 1)), 0o600))
			options := []string{"-O0", "-w"}
			if c.program == "threads" || c.program == "ranks" {
				options = append(options, "-g", "-fsanitize=thread")
			}
			out, err := compile(t, dir, c.program, options...)()
			require.Error(t, err, "nothing noticed: %s", out)
			assert.Contains(t, out, c.notices)
			t.Log(out)
		})
	}
}
