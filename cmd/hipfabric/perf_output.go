package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
)

// output is what rank 0 writes to; on other ranks nothing.
type output struct {
	report  *measure.Report
	receipt *receipt // nil without --receipt
	files   []*os.File
}

// output opens what the flags ask for. With a receipt the group's log goes there too.
func (f *perfFlags) output(cmd *cobra.Command, cfg *hipfabric.Config) (o *output, err error) {
	o = &output{report: &measure.Report{Table: cmd.OutOrStdout()}}
	switch f.jsonFile {
	case "":
	case "-":
		o.report.Table, o.report.JSON = cmd.ErrOrStderr(), cmd.OutOrStdout()
	default:
		if o.report.JSON, err = o.open(f.jsonFile); err != nil {
			return nil, err
		}
	}
	if f.rawFile != "" {
		if o.report.Raw, err = o.open(f.rawFile); err != nil {
			return nil, o.close(err)
		}
	}
	if f.receipt != "" {
		if err := f.keep(cmd, cfg, o); err != nil {
			return nil, o.close(err)
		}
	}
	return o, o.report.RawHeader()
}

// keep has all that is written go to a receipt as well.
func (f *perfFlags) keep(cmd *cobra.Command, cfg *hipfabric.Config, o *output) (err error) {
	if o.receipt, err = newReceipt(f.receipt); err != nil {
		return err
	}
	for _, one := range []struct {
		name string
		to   *io.Writer
	}{{receiptTable, &o.report.Table}, {receiptJSON, &o.report.JSON}, {receiptRaw, &o.report.Raw}} {
		w, err := o.receipt.file(one.name)
		if err != nil {
			return err
		}
		if *one.to != nil {
			w = io.MultiWriter(*one.to, w)
		}
		*one.to = w
	}
	log, err := o.receipt.file(receiptLog)
	if err != nil {
		return err
	}
	cfg.Logger = slog.New(both{cfg.Logger.Handler(), slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})})
	if f.kind != kindStaged {
		return nil
	}
	return o.receipt.write(receiptHip, gpu.Examine(cmd.Context(), gpu.Question{Library: f.staged.library, CUDA: strings.HasPrefix(f.staged.device, "cuda:")}))
}

func (o *output) open(path string) (io.Writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	o.files = append(o.files, file)
	return file, nil
}

// close ends all files and gives the error that matters: that of the measurement, else that of a file.
func (o *output) close(failed error) error {
	err := failed
	if o.receipt != nil {
		err = firstError(err, o.receipt.finish(failed))
	}
	for _, file := range o.files {
		err = firstError(err, file.Close())
	}
	return err
}
