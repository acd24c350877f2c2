//go:build !unix

package verbs

import (
	"errors"
	"os"
)

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
