package roce

import "golang.org/x/sys/unix"

// pin has the calling thread run on these CPUs only.
func pin(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(0, &set)
}
