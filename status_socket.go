package hipfabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	statusWriteTimeout = time.Second // for a reader that does not read
	statusDialTimeout  = time.Second // to find out whether an old socket is alive
	maxStatusDocument  = 4 << 20
)

// statusServer gives every connection one document and closes it.
type statusServer struct {
	path     string
	listener *net.UnixListener
	made     fs.FileInfo
	closing  chan struct{}
	done     sync.WaitGroup
}

// listenStatus binds path with mode 0600; "" gives nil, which serves nothing. The file of an ended process is replaced;
// a living one is refused.
func listenStatus(path string) (*statusServer, error) {
	if path == "" {
		return nil, nil
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fabric.Invalidf("StatusSocket: %v", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fabric.Invalidf("StatusSocket %s exists and is no socket; remove it or give another path", path)
	default:
		if conn, err := net.DialTimeout("unix", path, statusDialTimeout); err == nil {
			_ = conn.Close()
			return nil, fabric.Invalidf("StatusSocket %s is served by a living process; give each rank a path of its own", path)
		}
	}
	// Bound under another name and renamed once its mode is right, so that nobody can connect in between.
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fabric.Invalidf("StatusSocket %s: %v", path, err)
	}
	listener.SetUnlinkOnClose(false)
	s := &statusServer{path: path, listener: listener, closing: make(chan struct{})}
	if err = os.Chmod(temporary, 0o600); err == nil {
		if s.made, err = os.Lstat(temporary); err == nil {
			err = os.Rename(temporary, path)
		}
	}
	if err != nil {
		_ = listener.Close()
		_ = os.Remove(temporary)
		return nil, fabric.Invalidf("StatusSocket %s: %v", path, err)
	}
	return s, nil
}

// serve answers with what document gives, one reader after the other, and calls tick each rateWindow, until close.
func (s *statusServer) serve(document func() Status, tick func()) {
	if s == nil {
		return
	}
	s.done.Go(func() {
		ticker := time.NewTicker(rateWindow)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tick()
			case <-s.closing:
				return
			}
		}
	})
	s.done.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(statusWriteTimeout))
			_ = json.NewEncoder(conn).Encode(document())
			_ = conn.Close()
		}
	})
}

// close ends serving and removes the socket, unless another process has put its own there.
func (s *statusServer) close() {
	if s == nil {
		return
	}
	_ = s.listener.Close()
	close(s.closing)
	s.done.Wait()
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.made) {
		_ = os.Remove(s.path)
	}
}

// ReadStatus asks the group that serves path's socket (Config.StatusSocket). It blocks until the document is there or
// ctx ends. ErrInvalid when nobody serves path, or something else does.
func ReadStatus(ctx context.Context, path string) (Status, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return Status{}, fmt.Errorf("status of %s: %w", path, ctx.Err())
		}
		return Status{}, fabric.Invalidf("status of %s: %v; is a group with this StatusSocket running?", path, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var s Status
	if err := json.NewDecoder(io.LimitReader(conn, maxStatusDocument)).Decode(&s); err != nil {
		if ctx.Err() != nil {
			return Status{}, fmt.Errorf("status of %s: %w", path, ctx.Err())
		}
		return Status{}, fabric.Invalidf("status of %s: %v; it answers in no form of ours", path, err)
	}
	if s.Schema != StatusSchema {
		return Status{}, fabric.Invalidf("status of %s has schema %q; this reads %q: use the hipfabric of the group's version", path, s.Schema, StatusSchema)
	}
	return s, nil
}
