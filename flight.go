package hipfabric

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// flight is one rank's row of the table that is logged when a group fails.
type flight struct {
	rank     int
	missing  string // why there is no report; "" when there is one
	progress fabric.Progress
	records  []fabric.Record // oldest first
}

// logFlight logs who was where in one record: each rank's last call, and what sets ranks apart.
func logFlight(log *slog.Logger, cause error, rows []flight) {
	args := []any{keyErr, cause}
	inside := of(fabric.CauseOf(cause).Group, rows)
	for _, note := range []struct{ key, text string }{
		{keyMissing, missing(rows)}, {keyBehind, behind(inside)}, {keyDisagree, disagreement(inside)},
	} {
		if note.text != "" {
			args = append(args, note.key, note.text)
		}
	}
	table := make([]any, 0, len(rows))
	for _, r := range rows {
		table = append(table, slog.String(strconv.Itoa(r.rank), r.String()))
	}
	log.Error("flight records", append(args, slog.Group(keyRanks, table...))...)
}

// of are the rows of one group's calls, and of the ranks that may have made some.
func of(group string, rows []flight) []flight {
	return slices.DeleteFunc(slices.Clone(rows), func(f flight) bool { return f.missing == "" && f.progress.Group != group })
}

func (f flight) String() string {
	if f.missing != "" {
		return f.missing
	}
	text := "no call yet"
	if n := len(f.records); n > 0 {
		text = f.records[n-1].String()
	}
	if f.progress.Running {
		text += fmt.Sprintf(" for %v", f.progress.Age.Round(time.Millisecond))
	}
	if f.progress.Group != "" {
		text = fmt.Sprintf("in %s: %s", f.progress.Group, text)
	}
	if f.progress.Waiting != 0 {
		text += ", waits for " + list(ranksOf(f.progress.Waiting))
	}
	return text
}

func missing(rows []flight) string {
	var ranks []int
	for _, r := range rows {
		if r.missing != "" {
			ranks = append(ranks, r.rank)
		}
	}
	return list(ranks)
}

// at finds the record of the group's call seq.
func (f flight) at(seq uint64) (fabric.Record, bool) {
	for _, r := range slices.Backward(f.records) {
		if r.Op.Class() == fabric.Group && r.Seq == seq {
			return r, true
		}
	}
	return fabric.Record{}, false
}

// last is the newest call of the whole group.
func (f flight) last() (fabric.Record, bool) {
	for _, r := range slices.Backward(f.records) {
		if r.Op.Class() == fabric.Group {
			return r, true
		}
	}
	return fabric.Record{}, false
}

// stuck is the first of the group's calls that some rank did not finish; 0 when there is none.
func stuck(rows []flight) uint64 {
	var seq uint64
	for _, row := range rows {
		if r, ok := row.last(); ok && r.State != fabric.Done && (seq == 0 || r.Seq < seq) {
			seq = r.Seq
		}
	}
	return seq
}

// behind names the ranks that never came to the stuck call. Their records are too few to tell: the calls between pairs
// that a rank has made since may be all that it still has.
func behind(rows []flight) string {
	seq := stuck(rows)
	if seq == 0 {
		return ""
	}
	var notes []string
	for _, row := range rows {
		switch {
		case row.missing != "":
			notes = append(notes, fmt.Sprintf("of rank %d it is not known", row.rank))
		case row.progress.GroupSeq < seq:
			notes = append(notes, fmt.Sprintf("rank %d has not called seq %d", row.rank, seq))
		}
	}
	return strings.Join(notes, "; ")
}

// disagreement names the different calls that ranks made under the stuck call's number.
func disagreement(rows []flight) string {
	seq := stuck(rows)
	if seq == 0 {
		return ""
	}
	var calls []string
	by := make(map[string][]int)
	for _, row := range rows {
		r, ok := row.at(seq)
		if !ok {
			continue
		}
		call := compared(r)
		if by[call] == nil {
			calls = append(calls, call)
		}
		by[call] = append(by[call], row.rank)
	}
	if len(calls) < 2 {
		return ""
	}
	for i, call := range calls {
		calls[i] = fmt.Sprintf("ranks %s: %s", list(by[call]), call)
	}
	return fmt.Sprintf("seq %d: %s", seq, strings.Join(calls, "; "))
}

// compared is what the ranks of a group's call must agree on.
func compared(r fabric.Record) string {
	call := fmt.Sprintf("%v of %d bytes", r.Op, r.Bytes)
	switch {
	case r.Op.Reduces():
		call += fmt.Sprintf(", %v of %v", r.Reduce, r.DType)
	case r.Op == fabric.Broadcast:
		call += fmt.Sprintf(" from root %d", r.Peer)
	case r.Op == fabric.AllGatherV:
		call += fmt.Sprintf(", lengths of hash %016x", r.Hash)
	case r.Op == fabric.AllGatherRows:
		call += fmt.Sprintf(" in rows of %d", r.Hash)
	}
	return call
}

func list(ranks []int) string {
	texts := make([]string, len(ranks))
	for i, r := range ranks {
		texts[i] = strconv.Itoa(r)
	}
	return strings.Join(texts, ", ")
}
