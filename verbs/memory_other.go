//go:build !unix

package verbs

import "errors"

func mapPages(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapPages([]byte) error { return nil }
