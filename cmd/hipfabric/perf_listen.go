package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

// bareListen is the value of a --listen without one.
const bareListen = "this host"

// hint makes this process rank 0 at the address to listen at, and prints what to run on the other hosts.
func (f *perfFlags) hint(cmd *cobra.Command) error {
	flags := cmd.Flags()
	for _, name := range []string{"rank", "master"} {
		if flags.Changed(name) {
			return fabric.Invalidf("--listen makes this process rank 0 at that address; it excludes --%s", name)
		}
	}
	address := f.listen
	if address == bareListen {
		only, err := onlyAddress()
		if err != nil {
			return err
		}
		address = only
	}
	master, err := withPort(address, defaultPort)
	if err != nil {
		return err
	}
	world := f.world
	if !flags.Changed("world") {
		world = 2
	}
	if world < 2 || world > fabric.MaxWorld {
		return fabric.Invalidf("--world is %d; to wait for other hosts it must be 2 to %d", world, fabric.MaxWorld)
	}
	if f.secretFile == "" {
		f.secretFile = os.Getenv(launch.SecretFile)
	}
	secret, err := f.secretHint(master)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"rank": "0", "world": fmt.Sprint(world), "master": master} {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	out := cmd.ErrOrStderr()
	_, _ = fmt.Fprintln(out, "run on the other host:")
	for rank := 1; rank < world; rank++ {
		_, _ = fmt.Fprintf(out, "  hipfabric perf --rank %d --world %d --master %s%s%s\n", rank, world, ranks.Quote(master), secret, f.settings(cmd))
	}
	_, err = fmt.Fprintf(out, "waiting at %s\n", master)
	return err
}

// settings repeats the flags that every rank must have alike.
func (f *perfFlags) settings(cmd *cobra.Command) string {
	var b strings.Builder
	for _, name := range f.shared() {
		if cmd.Flags().Changed(name) {
			fmt.Fprintf(&b, " --%s=%s", name, ranks.Quote(cmd.Flags().Lookup(name).Value.String()))
		}
	}
	return b.String()
}

// secretHint is how the other host names the secret; without one only loopback will do.
func (f *perfFlags) secretHint(master string) (string, error) {
	host, _, err := net.SplitHostPort(master)
	if err != nil {
		return "", fabric.Invalidf("%q is no host:port: %v", master, err)
	}
	ip := net.ParseIP(host)
	switch {
	case f.secretFile != "":
		full, err := filepath.Abs(f.secretFile)
		if err != nil {
			full = f.secretFile
		}
		return " --secret-file " + ranks.Quote(full), nil
	case f.insecure:
		return " --insecure", nil
	case host == "localhost" || ip != nil && ip.IsLoopback():
		return "", nil
	}
	return "", fabric.Invalidf("%s is beyond loopback and needs a secret: run hipfabric keygen %s, copy the file to the other host, and give --secret-file %s on both",
		host, defaultKey, defaultKey)
}

// onlyAddress is this host's address where there is but one to choose.
func onlyAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list this host's addresses: %w", err)
	}
	var found []string
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			found = append(found, n.IP.String())
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fabric.Invalidf("this host has no address beyond loopback; write --listen=127.0.0.1 to stay on it")
	}
	return "", fabric.Invalidf("this host has several addresses, %s; choose the one that the other host reaches: --listen=%s", strings.Join(found, ", "), found[0])
}
