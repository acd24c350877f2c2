package launch

import (
	"os"
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// The variables. Rank, World and, above one rank, Master are required; the rest are optional.
const (
	Rank       = "HIPFABRIC_RANK"        // 0 to World-1
	World      = "HIPFABRIC_WORLD"       // 1 to fabric.MaxWorld
	LocalRank  = "HIPFABRIC_LOCAL_RANK"  // index among the ranks of this host; 0 when not set
	Master     = "HIPFABRIC_MASTER"      // rank 0's host:port, or file:PATH
	SecretFile = "HIPFABRIC_SECRET_FILE" // a file with the group's secret, readable by its owner only
	Name       = "HIPFABRIC_NAME"        // the group's name
	Listen     = "HIPFABRIC_LISTEN"      // addresses to bind, separated by commas
	Status     = "HIPFABRIC_STATUS"      // path of the status socket to serve
)

// TestPrefix begins the variables that this module's own tests read; Find passes over them.
const TestPrefix = "HIPFABRIC_TEST_"

const prefix = "HIPFABRIC_"

func known() []string {
	return []string{Rank, World, LocalRank, Master, SecretFile, Name, Listen, Status}
}

// ErrNone says that no HIPFABRIC_* variable is set: nobody launched this process as a rank. It is an ErrInvalid.
var ErrNone = fabric.Invalidf("no %s* variable is set, so this process is no rank: start it with `hipfabric run -n N -- PROGRAM`, "+
	"or fill Rank, World and Master of Config", prefix)

// Identity is who this process is.
type Identity struct {
	Rank, World, LocalRank int
	Master                 string // "" only at World 1
	SecretFile             string // "" when none was given
	Name                   string // of the group; "" when none was given
	Listen                 []string
	StatusSocket           string // "" when none was given
	Source                 string // what said so, for messages: "the HIPFABRIC_* variables"
}

// Find reads the environment. A set that is incomplete, out of range or misspelt is an ErrInvalid that names the
// variable, its value, its bound and what to do; no variable at all is ErrNone.
func Find() (Identity, error) { return From(os.Environ()) }

// From is Find over an environment in os.Environ's form.
func From(environ []string) (Identity, error) {
	vars, err := collect(environ)
	if err != nil {
		return Identity{}, err
	}
	if len(vars) == 0 {
		return Identity{}, ErrNone
	}
	id := Identity{Master: vars[Master], SecretFile: vars[SecretFile], Name: vars[Name], StatusSocket: vars[Status],
		Source: "the " + prefix + "* variables"}
	if id.World, err = number(vars, World, 1, fabric.MaxWorld, "as many ranks as one group takes"); err != nil {
		return Identity{}, err
	}
	if id.Rank, err = number(vars, Rank, 0, id.World-1, World+"-1"); err != nil {
		return Identity{}, err
	}
	if _, set := vars[LocalRank]; set {
		if id.LocalRank, err = number(vars, LocalRank, 0, id.World-1, World+"-1"); err != nil {
			return Identity{}, err
		}
	}
	if id.Master == "" && id.World > 1 {
		return Identity{}, fabric.Invalidf("%s is not set; %s %d needs rank 0's host:port, or file:PATH when all ranks share one file system",
			Master, World, id.World)
	}
	if list := vars[Listen]; list != "" {
		id.Listen = strings.Split(list, ",")
	}
	return id, nil
}

// collect picks the module's variables. One that is set twice counts as its last, as the C library's getenv may not.
func collect(environ []string) (map[string]string, error) {
	vars := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, TestPrefix) {
			continue
		}
		if !isKnown(name) {
			return nil, fabric.Invalidf("%s is set, and no such variable is known; %s", name, suggest(name))
		}
		vars[name] = value
	}
	return vars, nil
}

func isKnown(name string) bool {
	for _, k := range known() {
		if k == name {
			return true
		}
	}
	return false
}

func number(vars map[string]string, name string, low, high int, bound string) (int, error) {
	text, set := vars[name]
	if !set || text == "" {
		return 0, fabric.Invalidf("%s is not set, while other %s* variables are; set it to %d..%d, or start with `hipfabric run`",
			name, prefix, low, high)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fabric.Invalidf("%s is %q, not a whole number; set it to %d..%d", name, text, low, high)
	}
	if n < low || n > high {
		return 0, fabric.Invalidf("%s is %d, outside %d..%d (%s)", name, n, low, high, bound)
	}
	return n, nil
}
