package maintain

import (
	"slices"
	"sync"

	"bagpipe/engine/gitstore/internal/odb"
)

// OwnCommits are the store's own commits that the commit-graph may not have yet, in the
// order of the history; other writers' commits may lie between.
type OwnCommits struct {
	mu   sync.Mutex // guards list
	list []odb.GraphEntry
}

const maxOwn = 1 << 18 // some 110 bytes each; a million commits take ten minutes, a large join ten seconds

// Add takes a group that was published. The list stays bounded: without the oldest it no
// longer reaches the graph, which git then writes.
func (o *OwnCommits) Add(commits []odb.GraphEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list)+len(commits) > maxOwn {
		o.list = nil
	}
	o.list = append(o.list, commits...)
}

// since gives the commits from the graph to the tip, each after its parent, and forgets
// those before. ok is false when another writer's is among them.
func (o *OwnCommits) since(tip odb.Hash, g *odb.Graph) (commits []odb.GraphEntry, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := slices.IndexFunc(o.list, func(e odb.GraphEntry) bool { return e.Hash == tip }) + 1
	from := end
	for from > 0 && o.list[from-1].Hash == tip {
		if _, there := g.Find(tip); there {
			break
		}
		from--
		tip = o.list[from].Parent
	}
	commits = slices.Clone(o.list[from:end])
	o.list = slices.Clone(o.list[from:])
	_, ok = g.Find(tip)
	return commits, ok
}
