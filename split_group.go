package hipfabric

import (
	"context"
	"errors"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

// newChild puts the pieces of a split's group together and owns them from then on; enter makes it one.
func newChild(parent *Group, c Config, sub *bootstrap.Sub, transport fabric.Transport, policy spinPolicy) *Group {
	g := &Group{cfg: c, log: c.Logger.With(keyGroup, c.Name, keyRank, c.Rank, keyWorld, c.World), session: parent.session, in: sub, sub: sub,
		parent: parent, family: parent.family, policy: policy, opened: time.Now(), children: map[*Group]struct{}{},
		host:  fabric.New(transport, fabric.Options{Group: c.Name, Timeout: c.Timeout, Arbiter: sub}),
		paths: parent.hostPaths(), wire: parent.wire,
		failed: make(chan error, 1), closed: make(chan struct{})}
	sub.OnCause(func(cause error) {
		transport.Abort(cause)
		if g.session.Cause() == nil { // else the group that Open gave logs it
			g.failed <- cause // never blocks: it runs once
		}
	})
	return g
}

// enter is a child's beginning, once all ranks have theirs; what has ended the parent since has ended it.
func (g *Group) enter(isolated bool) {
	g.sub.Move(g.parent.sub, isolated)
	g.log.Info("group open", append([]any{keyPath, g.paths[0].Name, keyRanks, list(g.sub.Members())}, g.policy.notes()...)...)
	g.family.add(g)
	g.parent.mu.Lock()
	g.parent.children[g] = struct{}{}
	g.parent.mu.Unlock()
	if isolated {
		g.watcher.Go(g.watch)
	}
}

// members are the session's ranks by rank of g.
func (g *Group) members() []int {
	if g.sub != nil {
		return g.sub.Members()
	}
	all := make([]int, g.cfg.World)
	for r := range all {
		all[r] = r
	}
	return all
}

// leave ends g's calls and its part in what its ranks share.
func (g *Group) leave(ctx context.Context) error {
	if g.sub != nil {
		err := errors.Join(g.closeDevice(), g.host.Close())
		g.sub.Close()
		return err
	}
	g.status.close()
	err := g.session.Close(ctx) // first, or the others would take the path's end for a failure
	if pathErr := errors.Join(g.closeDevice(), g.host.Close()); err == nil {
		err = pathErr
	}
	return err
}

// closeChildren closes what g has been split into, after a Split or Device that is in progress; g has left, which ends its waits.
func (g *Group) closeChildren(ctx context.Context) {
	g.splitting.Lock()
	defer g.splitting.Unlock()
	_ = g.closeDevice() // one that came while g left
	g.mu.Lock()
	children := make([]*Group, 0, len(g.children))
	for child := range g.children {
		children = append(children, child)
	}
	g.mu.Unlock()
	for _, child := range children {
		_ = child.Close(ctx)
	}
}

// forget takes g out of the books of its parent and its family.
func (g *Group) forget() {
	g.family.remove(g)
	if g.parent != nil {
		g.parent.mu.Lock()
		delete(g.parent.children, g)
		g.parent.mu.Unlock()
	}
}
