package stage

import "sync"

// pool has what the proxy gives back and Queue takes.
type pool[T any] struct {
	mu   sync.Mutex
	free []T
}

func (p *pool[T]) put(x T) {
	p.mu.Lock()
	p.free = append(p.free, x)
	p.mu.Unlock()
}

func (p *pool[T]) get() (x T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		x, p.free, ok = p.free[n-1], p.free[:n-1], true
	}
	return x, ok
}

// take waits for one to be free.
func take[T any](t *Transport, p *pool[T]) (x T, err error) {
	err = t.patience(func() (ok bool) {
		x, ok = p.get()
		return ok
	})
	return x, err
}
