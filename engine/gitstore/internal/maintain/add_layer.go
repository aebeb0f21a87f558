package maintain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

// addLayer writes the layer, then the chain that names it, under git's own lock. A crash
// before the chain is renamed leaves a layer that no reader opens, and the lock.
func (g *Graph) addLayer() (err error) {
	if g.repo.Exists(g.single()) {
		return odb.ErrUnfit
	}
	lock, err := g.Lock()
	if lock == nil || err != nil {
		return err
	}
	named := false // then the lock has become the chain
	defer func() {
		err = errors.Join(err, lock.Close())
		if !named {
			err = errors.Join(err, g.repo.FS.Remove(g.lock()))
		}
		err = errors.Join(err, g.repo.FS.Remove(g.link()))
	}()
	read := g.open()
	defer read.Close()
	commits, ok := g.Own.since(g.tip(), read)
	if !ok {
		return odb.ErrUnfit
	}
	if len(commits) == 0 {
		return nil
	}
	if !g.checked && !read.Sound() {
		return odb.ErrUnfit
	}
	g.checked = true
	// Under the lock: else a layer that git has just written would go, too.
	if err := g.dropLayers(read.Names()); err != nil {
		return err
	}
	chain, err := g.writeLayer(read, commits)
	if err == nil {
		err = g.nameLayers(lock, chain)
	}
	named = err == nil
	return err
}

// nameLayers writes the chain into the lock, and makes that the chain.
func (g *Graph) nameLayers(lock disk.File, chain []odb.Hash) error {
	var text []byte
	for _, name := range chain {
		text = append(text, name.String()+"\n"...)
	}
	if _, err := lock.Write(text); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	return g.repo.FS.Rename(g.lock(), g.chain())
}

// writeLayer writes the file of a layer under its name.
func (g *Graph) writeLayer(read *odb.Graph, commits []odb.GraphEntry) (chain []odb.Hash, err error) {
	temp := g.repo.Temp("graph")
	f, err := g.repo.FS.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	chain, err = read.AppendLayer(f, commits)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = g.repo.FS.Rename(temp, filepath.Join(g.dir(), layerFile(chain[len(chain)-1])))
	}
	if err != nil {
		return nil, errors.Join(err, g.repo.FS.Remove(temp))
	}
	return chain, g.repo.FS.SyncDir(g.dir())
}

func layerFile(name odb.Hash) string { return "graph-" + name.String() + ".graph" }

// dropLayers removes the layers that the chain does not name. Layers that only the chain
// about to be replaced names stay until the next time: a reader of that chain may not have
// opened them yet.
func (g *Graph) dropLayers(keep []odb.Hash) error {
	list, err := g.repo.FS.ReadDir(g.dir())
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, name := range keep {
		named[layerFile(name)] = true
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "graph-") && !named[e.Name()] {
			if err := g.repo.Remove(filepath.Join(g.dir(), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
