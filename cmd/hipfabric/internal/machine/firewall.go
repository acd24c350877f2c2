package machine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// listTime is how long the listing of the rules may take.
const listTime = 2 * time.Second

// Firewalls names those that are at work here, of ufw, firewalld, nft and iptables, as far as this user may see. All but
// the first two are seen by root only; what nft lists for the first two is not named again.
func Firewalls(ctx context.Context) []string {
	var active []string
	if ufwEnabled("/etc/ufw/ufw.conf") {
		active = append(active, "ufw")
	}
	if runs("firewalld") {
		active = append(active, "firewalld")
	}
	if len(active) == 0 && filtersInput(ctx) {
		active = append(active, "nft")
	}
	if len(active) == 0 && strings.Contains(line("/proc/net/ip_tables_names"), "filter") {
		active = append(active, "iptables")
	}
	return active
}

func ufwEnabled(path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for text := range strings.Lines(string(b)) {
		if strings.EqualFold(strings.TrimSpace(text), "ENABLED=yes") {
			return true
		}
	}
	return false
}

// runs says whether a process of this name is there.
func runs(name string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, f := range files {
		if line(f) == name {
			return true
		}
	}
	return false
}

func filtersInput(ctx context.Context) bool {
	path, err := exec.LookPath("nft")
	if err != nil || os.Geteuid() != 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	rules, err := exec.CommandContext(ctx, path, "list", "ruleset").Output()
	return err == nil && dropsInput(string(rules))
}

// dropsInput says whether a ruleset keeps packets from coming in.
func dropsInput(rules string) bool {
	input := false
	for text := range strings.Lines(rules) {
		fields := strings.Fields(text)
		if len(fields) > 0 && (fields[0] == "chain" || fields[0] == "table") {
			input = false
		}
		input = input || strings.Contains(text, "hook input")
		if input && (strings.Contains(text, "policy drop") || strings.Contains(text, " drop") || strings.Contains(text, "reject")) {
			return true
		}
	}
	return false
}
