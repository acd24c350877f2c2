// Command bundle packs code objects for several GPUs into the one file that hipModuleLoadData takes: what Clang's own
// clang-offload-bundler writes, which Debian keeps in a package apart. build/kernels.sh runs it.
//
//	bundle OUT gfx1100=a.hsaco gfx1151=b.hsaco ...
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

const (
	magic = "__CLANG_OFFLOAD_BUNDLE__"
	align = 4096 // what Clang gives its bundler for HIP
)

type entry struct {
	id   string
	code []byte
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: bundle OUT ARCH=CODE-OBJECT ...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(out string, objects []string) error {
	entries := []entry{{id: "host-x86_64-unknown-linux--"}} // runtimes expect a host's, empty, before the GPUs'
	for _, object := range objects {
		arch, path, ok := strings.Cut(object, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCH=CODE-OBJECT", object)
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		entries = append(entries, entry{"hipv4-amdgcn-amd-amdhsa--" + arch, code})
	}
	return os.WriteFile(out, pack(entries), 0o644)
}

// pack writes the magic, the number of entries, each entry's place, size and name, and then, aligned, their code.
func pack(entries []entry) []byte {
	table := len(magic) + 8
	for _, e := range entries {
		table += 3*8 + len(e.id)
	}
	var head, body bytes.Buffer
	head.WriteString(magic)
	number := func(n int) { _ = binary.Write(&head, binary.LittleEndian, uint64(n)) } // a Buffer's Write gives no error
	number(len(entries))
	at := func() int { return (table + align - 1) / align * align }
	for _, e := range entries {
		for body.Len()%align != 0 {
			body.WriteByte(0)
		}
		number(at() + body.Len())
		number(len(e.code))
		number(len(e.id))
		head.WriteString(e.id)
		body.Write(e.code)
	}
	head.Write(make([]byte, at()-head.Len()))
	return append(head.Bytes(), body.Bytes()...)
}
