package fixity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// bagged is one version of an item as its bag tells of it.
type bagged struct {
	id       layout.ItemID
	version  int
	copy     layout.DepositCopy
	manifest layout.Manifest
	files    map[string][]byte // of a commit, by path
}

// ReadFile makes the records of a bag those of an item at a tip.
func (b *bagged) ReadFile(path string) ([]byte, error) {
	if data, is := b.files[path]; is {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// bagged gets a bag, reads its records, and places its bytes where they are asked for.
func (r *recovery) bagged(ctx context.Context, f target.Found, last bool, out *Recovered) (_ *bagged, err error) {
	got, err := fetching{r.From, getOf(r.t, f.Copy), f.Copy, f.Item, "", r.ledger, nil}.validated(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, got.drop()) }()
	b := &bagged{id: f.Item, version: f.Version}
	if err := b.read(got.dir); err != nil {
		return nil, err
	}
	rec, err := r.ledger.Read(b, f.Item, "")
	if err != nil {
		return nil, err
	}
	b.manifest = rec.Manifest
	if b.manifest.Item != f.Item || max(b.manifest.Version, 1) != f.Version {
		return nil, fault.New(fault.Damaged, fmt.Sprintf("the records in the bag %s are of another item or version", f.Copy.Place))
	}
	bag := target.Bag{Item: f.Item, Version: f.Version, Dir: got.dir, By: r.ledger.ByPerson().Author.Name, At: r.ledger.Now(), Message: "recover"}
	if b.copy, err = r.t.Put(ctx, bag); err != nil { // finds it, and reads it
		return nil, err
	}
	if last && !r.Records {
		if out.Bytes, err = r.placeBytes(ctx, b, got.dir); err != nil {
			return nil, err
		}
	}
	out.Collection, out.Label = b.manifest.Collection, b.manifest.Label
	if out.Bytes != layout.SourceDir && last && !r.Records {
		out.Unknown = append(out.Unknown, "what was dropped, as it was")
	}
	return b, r.end(b, rec, f)
}

// read reads the records of a bag.
func (b *bagged) read(dir string) error {
	top, item := filepath.Join(dir, filepath.FromSlash(target.RecordsPrefix)), layout.ItemDir(b.id)+"/"
	b.files = map[string][]byte{}
	for _, name := range []string{layout.ManifestJSON, layout.InventoryJSON, layout.ExecutionJSON} {
		data, err := disk.ReadFile(filepath.Join(top, name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == layout.InventoryJSON:
		case errors.Is(err, fs.ErrNotExist):
			return fault.New(fault.Refused, fmt.Sprintf("its bag has no %s%s: it was made without records, and can be taken in as a drop", target.RecordsPrefix, name))
		case err != nil:
			return err
		default:
			b.files[item+name] = data
		}
	}
	plans, err := os.ReadDir(filepath.Join(top, filepath.FromSlash(layout.PinnedDir)))
	if err != nil {
		return err
	}
	for _, p := range plans {
		data, err := disk.ReadFile(filepath.Join(top, filepath.FromSlash(layout.PinnedDir), p.Name()))
		if err != nil {
			return err
		}
		if path := layout.PinnedPath(ledger.DigestOf(data)); path == layout.PinnedDir+"/"+p.Name() {
			b.files[path] = data
		}
	}
	return nil
}

// end ends the steps that a deposited bag proves done: the one that made it, and the deposit. They end when the
// copy was written, as OCFL tells, else when the bag was begun, so that no term begins anew with a recovery.
func (r *recovery) end(b *bagged, rec *ledger.Record, f target.Found) error {
	x := rec.Execution
	message := fmt.Sprintf("%starget %s: %s; when it ended is not known", folder.RecoveredBy, r.From, f.Copy.Place)
	var at time.Time // when the bag was begun, or later, when its copy says that it was written
	for name, w := range x.Workflows {
		plan, err := r.ledger.PinnedPlan(b, w.Digest)
		if err != nil {
			return err
		}
		made := false
		for i := range plan.Steps {
			step := layout.Name(plan.Steps[i].Name)
			s := w.Steps[step]
			switch {
			case plan.Steps[i].Robot == "bag" && s.Status == state.InProgress:
				key, a, _ := s.Current()
				if at = a.Claimed; b.copy.Layout == target.LayoutOCFL && b.copy.Written.After(at) {
					at = b.copy.Written
				}
				b.copy.Written = at
				if _, err := state.Apply(x, plan, state.End{Workflow: name, Step: step, Attempt: key, State: state.Completed, Started: a.Claimed, At: at, Message: message}); err != nil {
					return err
				}
				made = true
			case plan.Steps[i].Robot == "deposit" && made:
				key := x.NextKey(step, r.ledger.ID)
				_, err := state.Apply(x, plan, state.Claim{Workflow: name, Step: step, Attempt: key, At: at, Runner: r.ledger.Runner(), Version: r.ledger.Version})
				var not *state.IllegalError
				if errors.As(err, &not) {
					continue // it waits for another step
				}
				if err == nil {
					_, err = state.Apply(x, plan, state.End{Workflow: name, Step: step, Attempt: key, State: state.Completed, Started: at, At: at, Message: message})
				}
				if err != nil {
					return err
				}
			}
		}
	}
	b.files[layout.ItemDir(b.id)+"/"+layout.ExecutionJSON] = x.Encode()
	return nil
}

// commit commits a version, with the copies of all so far. A definition that is pinned
// already stays as it is.
func (r *recovery) commit(ctx context.Context, b *bagged, sofar []*bagged) error {
	who, names, m := r.ledger.ByPerson(), layout.ItemDir(b.id)+"/", b.manifest
	return r.ledger.Transact(ctx, b.id, func(v gitstore.Reader) (*gitstore.Change, error) {
		files := map[string][]byte{}
		there, err := ledger.ReadOptional(v, names+layout.ExecutionJSON)
		if err != nil || there != nil && len(sofar) == 1 || len(sofar) > 1 && !bytes.Equal(there, sofar[len(sofar)-2].files[names+layout.ExecutionJSON]) {
			return nil, errors.Join(err, fault.New(fault.Refused, "another engine works on the item"))
		}
		for path, data := range b.files {
			if strings.HasPrefix(path, names) {
				files[path] = data
				continue
			}
			if pinned, err := ledger.ReadOptional(v, path); err != nil {
				return nil, err
			} else if pinned == nil {
				files[path] = data
			}
		}
		d, err := ledger.ReadDeposits(v, b.id)
		if err != nil {
			return nil, err
		}
		if targets, _ := r.settings.Current().Settings.Goals(m.Collection); r.From != steps.StoreTarget || targets != nil {
			for _, one := range sofar {
				d.Note(r.From, one.version, one.copy)
			}
			if files[names+layout.DepositsJSON], err = d.Encode(); err != nil {
				return nil, err
			}
		}
		subject := fmt.Sprintf("recover: version %d of %s (%s/%s)", b.version, b.id, m.Collection, ledger.Clip(m.Label, 100))
		return &gitstore.Change{Files: files, Author: who.Author, Message: ledger.Message(subject, string(r.From)+": "+b.copy.Place,
			[]ledger.Trailer{{"Bagpipe-Item", string(b.id)}, {"Bagpipe-Recovered", string(r.From)}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
}
