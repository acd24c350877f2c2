package hipfabric

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// laneFile is a tcp.LaneCache: it keeps in a file what LanesAuto has measured, by network. What cannot be read or written is measured again.
type laneFile string

func (f laneFile) read() map[string]int {
	known := map[string]int{}
	if b, err := os.ReadFile(string(f)); err == nil {
		_ = json.Unmarshal(b, &known) // a spoilt file knows nothing
	}
	return known
}

func (f laneFile) Load(key string) (lanes int, ok bool) {
	lanes, ok = f.read()[key]
	return lanes, ok
}

// Store replaces the file at once: another rank may read it meanwhile.
func (f laneFile) Store(key string, lanes int) error {
	known := f.read()
	known[key] = lanes
	b, err := json.MarshalIndent(known, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), string(f))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
