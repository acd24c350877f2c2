//go:build !unix

package main

import "os"

func terminate() []os.Signal { return nil }
