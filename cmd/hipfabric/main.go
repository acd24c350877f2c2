package main

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and gives its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot(args)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(stderr, "hipfabric: "+text)
	}
	return exitCode(err)
}
