package main

import (
	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/fabric"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor (links | hip | rdma) [flags]",
		Short: "Say what is wrong with the way to another host, or with the GPUs or RDMA of this one",
		Long: `Measure and judge what a group would use, before a group does. docs/doctor.md explains what is found.

  hipfabric doctor links --help   the way between two hosts: --listen on one, --peer on the other
  hipfabric doctor hip --help     the GPUs of this host and the HIP library
  hipfabric doctor rdma --help    the RDMA devices of this host, and queue pairs with another`,
		Args: doctorArgs,
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newDoctorLinks(), newDoctorHip(), newDoctorRdma())
	return cmd
}

func doctorArgs(cmd *cobra.Command, args []string) error {
	var subjects []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			subjects = append(subjects, c.Name())
		}
	}
	if len(args) == 0 {
		return fabric.Invalidf("doctor needs a subject; %s", suggest("", subjects))
	}
	return fabric.Invalidf("doctor knows no %q; %s", args[0], suggest(args[0], subjects))
}
