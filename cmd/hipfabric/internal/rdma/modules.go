package rdma

import (
	"os"
	"slices"
	"strings"
)

// core are the modules that every device needs.
func core() []string { return []string{"ib_core", "ib_uverbs"} }

// companion is the module that makes HCAs of the interfaces of an Ethernet driver.
func companion(driver string) string {
	return map[string]string{
		"mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib", "mlx4_en": "mlx4_ib", "bnxt_en": "bnxt_re", "ice": "irdma", "i40e": "irdma", "idpf": "irdma",
		"ionic": "ionic_rdma", "qede": "qedr", "hns3": "hns_roce_hw_v2", "cxgb4": "iw_cxgb4", "mana": "mana_ib", "erdma": "erdma",
	}[driver]
}

// soft is the module that makes an HCA of any interface.
const soft = "rdma_rxe"

// modules are the states of those that this host needs or could use; fixed says that its kernel loads none.
func (s *System) modules(h *Host) (states map[string]string, fixed bool) {
	wanted := append(core(), soft)
	for _, i := range h.Interfaces {
		if name := companion(i.Driver); name != "" && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	loaded, err := os.ReadFile(s.path("proc/modules"))
	fixed = h.OS != "" && strings.HasPrefix(h.OS, "linux") && os.IsNotExist(err)
	release := s.line("proc/sys/kernel/osrelease")
	built := s.line("lib/modules", release, "modules.builtin")
	all := s.line("lib/modules", release, "modules.dep")
	states = map[string]string{}
	for _, name := range wanted {
		switch {
		case strings.Contains("\n"+string(loaded), "\n"+name+" ") || s.there("sys/module", name) || listed(built, name):
			states[name] = Loaded
		case listed(all, name):
			states[name] = Available
		case all != "" || fixed:
			states[name] = Missing
		default:
			states[name] = NotTold
		}
	}
	return states, fixed
}

// listed says whether a file of depmod's names the module, whose file may have - for _ and be packed.
func listed(text, name string) bool {
	for line := range strings.Lines(text) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		file := path[strings.LastIndexByte(path, '/')+1:]
		file, _, found := strings.Cut(file, ".ko")
		if found && strings.ReplaceAll(file, "-", "_") == name {
			return true
		}
	}
	return false
}
