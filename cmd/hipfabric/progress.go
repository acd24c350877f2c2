package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"
)

// watch draws on w how many of a stage's calls are done, where w is a terminal; elsewhere nothing. stop ends the drawing
// before anything else is written. Checks only are watched: to draw while calls are timed would change their times.
func watch(w io.Writer, stage string) (tell func(done, total int), stop func(err error)) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(int, int) {}, func(error) {}
	}
	tracker := &progress.Tracker{Message: stage, Units: progress.Units{Notation: " calls", NotationPosition: progress.UnitsNotationPositionAfter,
		Formatter: func(n int64) string { return strconv.FormatInt(n, 10) }}}
	p := progress.NewWriter()
	p.SetOutputWriter(file)
	p.SetUpdateFrequency(100 * time.Millisecond)
	p.SetTrackerLength(30)
	p.Style().Visibility.ETA = true
	p.AppendTracker(tracker)
	ended := make(chan struct{})
	go func() { defer close(ended); p.Render() }()
	return func(done, total int) {
			tracker.UpdateTotal(int64(total))
			tracker.SetValue(int64(done))
		}, func(err error) {
			if err != nil {
				tracker.MarkAsErrored()
			} else {
				tracker.MarkAsDone()
			}
			p.Stop()
			<-ended
		}
}
