package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// The files of a receipt.
const (
	receiptTable   = "tables.txt"
	receiptJSON    = "results.jsonl"
	receiptRaw     = "samples.csv"
	receiptLog     = "log.txt"
	receiptRanks   = "environment.jsonl" // a rank a line
	receiptHip     = "doctor-hip.json"   // of rank 0's host, with --kind staged
	receiptVerdict = "verdict.txt"
	receiptSums    = "SHA256SUMS"
)

// receipt is a folder with what a measurement gave and what it was made on, to be sent.
type receipt struct {
	dir   string
	files map[string]*os.File
}

// newReceipt makes the folder, which must be empty or not there yet.
func newReceipt(dir string) (*receipt, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	if len(old) > 0 {
		return nil, fabric.Invalidf("--receipt: %s is not empty (%s); name a new folder", dir, old[0].Name())
	}
	return &receipt{dir: dir, files: map[string]*os.File{}}, nil
}

// file is one of the receipt's, made when first asked for.
func (r *receipt) file(name string) (io.Writer, error) {
	if f := r.files[name]; f != nil {
		return f, nil
	}
	f, err := os.Create(filepath.Join(r.dir, name))
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	r.files[name] = f
	return f, nil
}

// write adds v as a line of JSON to a file.
func (r *receipt) write(name string, v any) error {
	w, err := r.file(name)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(v)
}

// finish writes how it ended and the sums of all files, in the form that sha256sum -c reads.
func (r *receipt) finish(failed error) error {
	verdict := "PASS"
	if failed != nil {
		verdict = "FAIL: " + failed.Error()
	}
	w, err := r.file(receiptVerdict)
	if err == nil {
		_, err = fmt.Fprintln(w, verdict)
	}
	var names []string
	for name, f := range r.files {
		names = append(names, name)
		err = errors.Join(err, f.Close())
	}
	slices.Sort(names)
	sums, e := os.Create(filepath.Join(r.dir, receiptSums))
	if err = errors.Join(err, e); err != nil {
		return err
	}
	for _, name := range names {
		b, e := os.ReadFile(filepath.Join(r.dir, name))
		_, f := fmt.Fprintf(sums, "%x  %s\n", sha256.Sum256(b), name)
		err = errors.Join(err, e, f)
	}
	return errors.Join(err, sums.Close())
}

// gather has rank 0 keep what every rank says of its host. All ranks call it; r is nil but on rank 0.
func (r *receipt) gather(ctx context.Context, g *hipfabric.Group, mine environment) error {
	if r == nil {
		msg, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		return g.Control().Send(ctx, 0, msg)
	}
	if err := r.write(receiptRanks, ranked{0, mine}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for range g.World() - 1 {
		n, from, err := g.Control().Recv(ctx, buf)
		if err != nil {
			return err
		}
		var theirs environment
		if err := json.Unmarshal(buf[:n], &theirs); err != nil {
			return fmt.Errorf("read the environment of rank %d: %w", from, err)
		}
		if err := r.write(receiptRanks, ranked{from, theirs}); err != nil {
			return err
		}
	}
	return nil
}

// ranked is one rank's environment.
type ranked struct {
	Rank int `json:"rank"`
	environment
}

// both gives each record to two handlers.
type both [2]slog.Handler

func (b both) Enabled(ctx context.Context, l slog.Level) bool {
	return b[0].Enabled(ctx, l) || b[1].Enabled(ctx, l)
}

func (b both) Handle(ctx context.Context, r slog.Record) error {
	var errs []error
	for _, h := range b {
		if h.Enabled(ctx, r.Level) {
			errs = append(errs, h.Handle(ctx, r.Clone()))
		}
	}
	return errors.Join(errs...)
}

func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b[0].WithAttrs(attrs), b[1].WithAttrs(attrs)}
}

func (b both) WithGroup(name string) slog.Handler {
	return both{b[0].WithGroup(name), b[1].WithGroup(name)}
}
