package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

const definition = `schema: 1
name: accession
steps:
  - name: register
    milestone: registered
  - name: unpack
    robot: noop
  - name: validate
    robot: noop
  - name: convert
    robot: noop
  - name: describe
    robot: noop
  - name: deposit
    robot: noop
    milestone: deposited
`

var began = time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)

// options are those of a plain engine.
func options() engine.Options {
	host, _ := claim.ThisHost() // an unnamed host will do here
	return engine.Options{Now: time.Now, Random: seeded{rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))},
		Person: gitstore.Signature{Name: "Bench", Email: "bench@localhost"}, Robots: steps.Builtins(), Host: host}
}

type seeded struct{ r *rand.Rand }

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

// identifier is that of the i-th item.
func identifier(i int) layout.ItemID {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], rand.New(rand.NewPCG(7, uint64(i))).Uint64()>>8)
	return layout.ItemIDOf(binary.BigEndian.Uint64(b[:]))
}

// files are the records of the i-th item, with so many of its steps done.
func files(plan *state.Definition, i, done int) (map[string][]byte, error) {
	id := identifier(i)
	created := began.Add(time.Duration(i) * time.Second)
	m := layout.Manifest{Item: id, Version: 1, Collection: layout.Name([]string{"letters", "maps", "prints"}[i%3]), Label: fmt.Sprintf("box-%03d/letter %07d", i%300, i),
		Lane: "normal", Created: created, Batch: fmt.Sprintf("batch-%d", i/25_000),
		Source:    layout.Source{Name: fmt.Sprintf("letter-%07d", i), Kind: "folder", Files: 12, Bytes: 123456, Digest: "sha256:" + string(id), Taken: created, By: "inbox"},
		Metadata:  map[string]any{"year": 1900 + i%120, "title": fmt.Sprintf("A letter, the %dth", i)},
		Inventory: &layout.InventorySummary{Digest: "sha256:" + string(id), Files: 12, Bytes: 123456}}
	manifest, err := m.Encode(nil)
	if err != nil {
		return nil, err
	}
	x := &state.Execution{Item: id, Milestones: map[layout.Name]time.Time{}}
	run, eng := "accession.1", layout.EngineID("5c1e9a70")
	at := created
	if _, err := state.Apply(x, plan, state.Start{Workflow: run, Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: at}); err != nil {
		return nil, err
	}
	for s := 1; s <= done; s++ {
		name, k := layout.Name(plan.Steps[s].Name), layout.AttemptKey{N: 1, Engine: eng}
		at = at.Add(7 * time.Second)
		if _, err := state.Apply(x, plan, state.Claim{Workflow: run, Step: name, Attempt: k, At: at, Runner: "archive-host-1:4711"}); err != nil {
			return nil, err
		}
		at = at.Add(1234 * time.Millisecond)
		end := state.End{Workflow: run, Step: name, Attempt: k, At: at, Started: at.Add(-time.Second), State: state.Completed, Message: "12 files, nothing to remark"}
		if _, err := state.Apply(x, plan, end); err != nil {
			return nil, err
		}
	}
	dir := layout.ItemDir(id) + "/"
	return map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: x.Encode()}, nil
}

// doneOf is how many steps of the i-th item are done.
func doneOf(i int) int {
	if i%10 < 7 {
		return 5
	}
	return i % 5
}

// makeWorkspace commits n items, many at a time, and as many more as are retired. Every commit writes nearly all
// folders of items anew, so few commits make fewer objects.
func makeWorkspace(ctx context.Context, root string, n, retired int) error {
	if err := engine.Init(ctx, root, options()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, layout.ItemsDir, "0"), 0o777); err != nil {
		return err // with no folder at all, the store of the items counts as not mounted
	}
	plan, err := state.ParseDefinition("accession.yaml", []byte(definition), nil)
	if err != nil {
		return err
	}
	s, err := gitstore.Open(root, gitstore.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer s.Close()
	first := map[string][]byte{layout.PinnedPath(plan.Digest): []byte(definition), filepath.ToSlash("workflows/accession.yaml"): []byte(definition)}
	if err := commit(ctx, s, first); err != nil {
		return err
	}
	const each, retiring = 100_000, 1000
	for at := 0; at < n+retired; at += each {
		all := map[string][]byte{}
		for i := at; i < min(n+retired, at+each); i++ {
			f, err := files(plan, i, doneOf(i))
			if err != nil {
				return err
			}
			maps.Copy(all, f)
		}
		if err := commit(ctx, s, all); err != nil {
			return err
		}
	}
	for at := n; at < n+retired; at += retiring {
		if err := retire(ctx, s, at, min(n+retired, at+retiring)); err != nil {
			return err
		}
	}
	_, err = s.Maintain(ctx)
	return err
}

// retire takes the records of some items out of the tip, in one commit.
func retire(ctx context.Context, s *gitstore.Store, from, to int) error {
	v, err := s.Tip()
	if err != nil {
		return err
	}
	lines := map[string]layout.Retired{}
	all := map[string][]byte{}
	for i := from; i < to; i++ {
		id := identifier(i)
		p := layout.RetiredPath(id)
		if _, read := lines[p]; !read {
			data, err := ledger.ReadOptional(v, p)
			if err != nil {
				return err
			}
			if lines[p], err = layout.DecodeRetired(data); err != nil {
				return err
			}
		}
		lines[p].Items[id] = layout.Standing{Commit: v.Commit().String(), Collection: "letters", Label: fmt.Sprintf("letter %07d", i)}
		all[layout.ItemDir(id)+"/"+layout.ManifestJSON], all[layout.ItemDir(id)+"/"+layout.ExecutionJSON] = nil, nil
	}
	for p, r := range lines {
		if all[p], err = r.Encode(); err != nil {
			return err
		}
	}
	return commit(ctx, s, all)
}

// change lets items go on by one step, as another engine would.
func change(ctx context.Context, root string, from, n int) error {
	plan, err := state.ParseDefinition("accession.yaml", []byte(definition), nil)
	if err != nil {
		return err
	}
	s, err := gitstore.Open(root, gitstore.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer s.Close()
	all := map[string][]byte{}
	for i := range n {
		f, err := files(plan, (from+i)*10+7, 3)
		if err != nil {
			return err
		}
		maps.Copy(all, f)
	}
	return commit(ctx, s, all)
}

func commit(ctx context.Context, s *gitstore.Store, all map[string][]byte) error {
	_, err := s.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: all, Message: "items: more\n"}, nil
	})
	return err
}
