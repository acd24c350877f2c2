package bootstrap

import (
	"errors"
	"io"
	"slices"
	"time"
)

// dropPath ends a path, and with the last one its link. So does an end of the other side's bytes when all is said: the
// other ways could only repeat it.
func (l *loop) dropPath(k *link, p *path, err error) {
	if len(k.paths) < 2 || errors.Is(err, io.EOF) && (k.left || p.shut) {
		l.drop(k, err)
		return
	}
	k.remove(p)
	if p.rail < len(l.s.lost) {
		select {
		case l.s.lost[p.rail] <- err:
		default: // it is being dialled
		}
	}
}

// prune closes paths that only cost memory or hide that a way is dead.
func (l *loop) prune(now time.Time) {
	for _, k := range l.links {
		for _, p := range slices.Backward(k.paths) {
			if err := k.useless(p, now); err != nil && !l.said && !k.left {
				l.dropPath(k, p, err)
			}
		}
	}
}

// firstStall is when prune has something to do though nothing happens.
func (l *loop) firstStall() (first time.Time) {
	if l.said {
		return first
	}
	for _, k := range l.links {
		for _, p := range k.paths {
			if p.behind.IsZero() || len(k.paths) < 2 || k.left {
				continue
			}
			if t := p.behind.Add(pathStall); first.IsZero() || t.Before(first) {
				first = t
			}
		}
	}
	return first
}

// adopt takes in the further paths that have come.
func (l *loop) adopt() {
	l.s.mu.Lock()
	arrived := l.s.arrived
	l.s.arrived = nil
	l.s.mu.Unlock()
	for _, a := range arrived {
		l.admit(l.byRank[a.peer], a)
	}
}

// admit adds a path to a link that lives, in the place of an older one of the same rail.
func (l *loop) admit(k *link, a arrival) {
	same := slices.IndexFunc(k.paths, func(p *path) bool { return p.rail == a.path.rail })
	older := same >= 0 && int16(a.path.generation-k.paths[same].generation) < 0
	if !k.alive() || !k.several || k.left || l.said || older {
		a.path.close()
		return
	}
	k.add(a.path, a.out)
	if same >= 0 {
		l.dropPath(k, k.paths[same], errNewer)
	}
}

// shutdown ends the writing of each path that has written all.
func (l *link) shutdown() {
	for _, p := range l.paths {
		if !l.unsentBy(p) && !p.shut {
			shutdownFD(p.fd)
			p.shut, l.shut = true, true
		}
	}
}
