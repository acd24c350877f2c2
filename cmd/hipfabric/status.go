package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
)

// statusTimeout is how long one socket may take to answer.
const statusTimeout = 5 * time.Second

func newStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [SOCKET...]",
		Short: "Say what a running group does",
		Long: `Ask running groups what they do, through the Unix socket of a rank: HIPFABRIC_STATUS, Config.StatusSocket. Without SOCKET,
the groups of this user that "hipfabric run" started on this host are asked, each at its lowest rank here. Rank 0 knows all
ranks; another rank knows at least itself and rank 0.`,
		RunE: func(cmd *cobra.Command, args []string) error { return status(cmd, args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, a group a line")
	return cmd
}

func status(cmd *cobra.Command, sockets []string, asJSON bool) error {
	found := len(sockets) == 0
	if found {
		sockets = findSockets(os.TempDir())
	}
	var failed []error
	told := 0
	for _, socket := range sockets {
		ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
		s, err := hipfabric.ReadStatus(ctx, socket)
		cancel()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		told++
		if asJSON {
			err = json.NewEncoder(cmd.OutOrStdout()).Encode(s)
		} else {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), statusText(s))
		}
		if err != nil {
			return err
		}
	}
	if found && told == 0 {
		return fabric.Invalidf("no running group of this user was found under %s; name its socket (HIPFABRIC_STATUS or Config.StatusSocket)", os.TempDir())
	}
	if found { // a group may have ended between the search and the question
		return nil
	}
	return errors.Join(failed...)
}

// findSockets lists one socket a group that run started: that of its lowest rank.
func findSockets(dir string) []string {
	groups, _ := filepath.Glob(filepath.Join(dir, ranks.FolderPattern))
	var found []string
	for _, group := range groups {
		sockets, _ := filepath.Glob(filepath.Join(group, ranks.SocketPattern)) // sorted by name
		if len(sockets) > 0 {
			found = append(found, sockets[0])
		}
	}
	return found
}

func statusText(s hipfabric.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %s, told by rank %d of %d, up %v\n", s.Group, s.Rank, s.World, ms(s.UptimeMs))
	if s.Cause != "" {
		fmt.Fprintf(&b, "failed: %s\n", s.Cause)
	}
	for _, p := range s.Paths {
		fmt.Fprintf(&b, "path %s: %s\n", p.Name, p.Reason)
	}
	fmt.Fprintf(&b, "%d calls, %d failed, %s; over the last %v: %.1f calls/s, %s/s, %.0f%% of the time in calls\n\n", s.Calls, s.Failed, sized(float64(s.Bytes)),
		ms(s.RatesOverMs), s.CallsPerSecond, sized(s.BytesPerSecond), 100*s.InCallsFraction)
	if d := s.Device; d != nil {
		fmt.Fprintf(&b, "device memory, %s gate on %s: %d parts of calls, %d failed, %s; %s\n\n", d.Gate, d.Device, d.Calls, d.Failed, sized(float64(d.Bytes)), deviceCall(d))
	}
	t := statusTable(table.Row{"rank", "host", "state", "heard", "call", "now", "seq", "bytes", "peer", "age", "waits for", "calls", "calls/s"})
	for _, r := range s.Ranks {
		t.AppendRow(rankRow(r))
	}
	b.WriteString(t.Render() + "\n")
	if len(s.Peers) > 0 {
		t = statusTable(table.Row{"peer", "rail", "lanes", "lost", "sent", "received", "sent/s", "received/s", "retransmits", "round trip"})
		for _, p := range s.Peers {
			for _, r := range p.Rails {
				t.AppendRow(railRow(p.Peer, r))
			}
		}
		b.WriteString("\n" + t.Render() + "\n")
	}
	return b.String()
}

// deviceCall is the call that a stream has reached, or the last one.
func deviceCall(d *hipfabric.DeviceStatus) string {
	switch {
	case d.Op == "":
		return "no call yet"
	case !d.Running:
		return fmt.Sprintf("the last was %s seq %d of %d bytes, %v ago", d.Op, d.Seq, d.CallBytes, ms(d.CallAgeMs))
	case len(d.WaitingFor) > 0:
		return fmt.Sprintf("%s seq %d of %d bytes for %v, waits for %s", d.Op, d.Seq, d.CallBytes, ms(d.CallAgeMs), strings.Trim(fmt.Sprint(d.WaitingFor), "[]"))
	}
	return fmt.Sprintf("%s seq %d of %d bytes for %v", d.Op, d.Seq, d.CallBytes, ms(d.CallAgeMs))
}

func rankRow(r hipfabric.RankStatus) table.Row {
	row := table.Row{r.Rank, r.Host, r.State, ms(r.HeardMs).String() + " ago"}
	if r.Op == "" {
		row = append(row, "none yet", "", "", "", "", "", "")
	} else {
		peer := ""
		if r.Peer >= 0 {
			peer = fmt.Sprint(r.Peer)
		}
		now := "ended"
		if r.Running {
			now = "running"
		}
		op := r.Op
		if r.Group != "" {
			op += " in " + r.Group
		}
		row = append(row, op, now, r.Seq, r.CallBytes, peer, ms(r.CallAgeMs), strings.Trim(fmt.Sprint(r.WaitingFor), "[]"))
	}
	return append(row, r.Calls, fmt.Sprintf("%.1f", r.CallsPerSecond))
}

func railRow(peer int, r hipfabric.RailBytes) table.Row {
	trip := ""
	if r.RoundTripUs > 0 {
		trip = fmt.Sprintf("%.0f us", r.RoundTripUs)
	}
	lanes := fmt.Sprint(r.Lanes)
	if r.Lanes == 0 {
		lanes = "dead"
	}
	return table.Row{peer, r.Name, lanes, r.Lost, sized(float64(r.SentBytes)), sized(float64(r.ReceivedBytes)), sized(r.SentBytesPerSecond),
		sized(r.ReceivedBytesPerSecond), r.Retransmits, trip}
}

func statusTable(header table.Row) table.Writer {
	t := measure.NewTable()
	t.AppendHeader(header)
	return t
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// sized is a number of bytes as people read it.
func sized(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			return fmt.Sprintf("%.4g %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.4g TiB", n)
}
