// Package fakeverbs builds, for tests, a libibverbs.so.1 whose queue pairs are connected to themselves, so that the C between it
// and Go runs without RDMA. It needs a C compiler and rdma-core's header.
package fakeverbs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrTools says that there is no compiler or no header.
var ErrTools = errors.New("no C compiler, or no <infiniband/verbs.h>")

// versions are those of rdma-core's libibverbs.
var versions = map[string][]string{
	"IBVERBS_1.0": {"ibv_create_comp_channel", "ibv_destroy_comp_channel"},
	"IBVERBS_1.1": {
		"ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name", "ibv_get_device_guid", "ibv_open_device", "ibv_close_device",
		"ibv_query_device", "ibv_query_port", "ibv_query_gid", "ibv_query_pkey", "ibv_alloc_pd", "ibv_dealloc_pd", "ibv_reg_mr", "ibv_dereg_mr",
		"ibv_create_cq", "ibv_destroy_cq", "ibv_get_cq_event", "ibv_ack_cq_events", "ibv_create_qp", "ibv_modify_qp", "ibv_query_qp",
		"ibv_destroy_qp", "ibv_get_async_event", "ibv_ack_async_event",
	},
	"IBVERBS_1.8":  {"ibv_reg_mr_iova2"},
	"IBVERBS_1.9":  {"ibv_get_device_index"},
	"IBVERBS_1.11": {"_ibv_query_gid_table"},
	"IBVERBS_1.12": {"ibv_reg_dmabuf_mr"},
	"IBVERBS_1.14": {"ibv_query_qp_data_in_order"},
}

// Required names the entry points that no library may lack, with their versions, and Optional those that it may.
func Required() []string { return names("IBVERBS_1.0", "IBVERBS_1.1") }

// Optional is the rest.
func Optional() []string {
	return names("IBVERBS_1.8", "IBVERBS_1.9", "IBVERBS_1.11", "IBVERBS_1.12", "IBVERBS_1.14")
}

func names(of ...string) []string {
	var all []string
	for _, v := range of {
		for _, name := range versions[v] {
			all = append(all, name+"@"+v)
		}
	}
	return all
}

// script gives each entry point its version, but for those of less.
func script(less []string) string {
	var b strings.Builder
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		symbols := slices.DeleteFunc(slices.Clone(versions[version]), func(s string) bool {
			return slices.Contains(less, s) || slices.Contains(less, s+oldSuffix)
		})
		for _, l := range less {
			if name, old := strings.CutSuffix(l, oldSuffix); old && "@"+version == oldSuffix {
				symbols = append(symbols, name)
			}
		}
		fmt.Fprintf(&b, "%s {\n", version)
		if len(symbols) > 0 {
			fmt.Fprintf(&b, "global: %s;\n", strings.Join(symbols, "; "))
		}
		if version == "IBVERBS_1.1" {
			b.WriteString("local: *;\n")
		}
		b.WriteString("};\n")
	}
	return b.String()
}

const oldSuffix = "@IBVERBS_1.0"

// Build compiles a library of devices HCAs into dir, less the entry points of the given names, and gives its path. A name with
// @IBVERBS_1.0 is there, under that version alone. source is this package's folder. The library has no soname, or whoever loads
// libibverbs.so.1 later in the process would get it.
func Build(source, dir string, devices int, less ...string) (string, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", ErrTools
	}
	versionScript := filepath.Join(dir, "versions")
	if err := os.WriteFile(versionScript, []byte(script(less)), 0o644); err != nil {
		return "", err
	}
	library := filepath.Join(dir, "libibverbs.so.1")
	out, err := exec.Command(cc, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fPIC", "-shared",
		"-Wl,--version-script="+versionScript, fmt.Sprintf("-DDEVICES=%d", devices), "-o", library,
		filepath.Join(source, "testdata", "fakeverbs.c"), "-pthread").CombinedOutput()
	switch {
	case err == nil:
		return library, nil
	case exec.Command(cc, "-fsyntax-only", "-include", "infiniband/verbs.h", "-x", "c", os.DevNull).Run() != nil:
		return "", ErrTools
	}
	return "", fmt.Errorf("fakeverbs: %w\n%s", err, out)
}
