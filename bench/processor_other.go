//go:build !unix

package main

import (
	"errors"
	"fmt"
	"time"
)

func processorTime() (time.Duration, error) {
	return 0, fmt.Errorf("the processor time of a process: %w", errors.ErrUnsupported)
}
