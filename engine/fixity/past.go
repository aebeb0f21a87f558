package fixity

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The rules are: deposits.json has the last look at each copy, and a look overwrites the one before. The looks before
// stand in the history, in the deposits.json of each commit that recorded a look, and of its parent, which has what the
// deposit before it found; and in the pages of sweeps. A few items are looked for by their paths, which the history's filters
// answer; many by one pass over all commits. Both give the same.

const (
	fewItems = 4
	// startedAhead is how far the clock of the site that took an item in may be ahead of that of a sweep which saw it.
	startedAhead = time.Hour
)

// Past gives what the history before a view has of copies of items beside their present records: of a manifest and
// deposits.json as they are at the view, the deposits.json of all looks at the item's copies, in no order, and some several
// times. A row of a sweep is one, too, with times and outcomes alone. An item whose copies were never looked at costs nothing.
// For each look of each item it holds some 40 bytes. The function may be called by several goroutines.
func Past(ctx context.Context, l *ledger.Ledger, v gitstore.View, items []layout.ItemID) func(layout.Manifest, layout.Deposits) ([]layout.Deposits, error) {
	p := &past{ledger: l, view: v, wanted: make(map[layout.ItemID]bool, len(items))}
	for _, id := range items {
		p.wanted[id] = true
	}
	swept := sync.OnceValues(func() (bool, error) {
		tree, err := v.TreeOf(SweepDir)
		return !tree.IsZero(), err
	})
	commits := func(id layout.ItemID) ([]gitstore.Hash, error) {
		found, err := p.commits(ctx, layout.ItemDir(id)+"/"+layout.DepositsJSON)
		return found[id], err
	}
	rows := func(m layout.Manifest) ([]seenRow, error) {
		found, err := p.rows(ctx, m.Item, m.Created.Add(-startedAhead))
		return found[m.Item], err
	}
	if len(items) > fewItems {
		all := sync.OnceValues(func() (map[layout.ItemID][]gitstore.Hash, error) { return p.commits(ctx, "") })
		commits = func(id layout.ItemID) ([]gitstore.Hash, error) {
			found, err := all()
			return found[id], err
		}
		every := sync.OnceValues(func() (map[layout.ItemID][]seenRow, error) { return p.rows(ctx, "", time.Time{}) })
		rows = func(m layout.Manifest) ([]seenRow, error) {
			found, err := every()
			return found[m.Item], err
		}
	}
	return func(m layout.Manifest, d layout.Deposits) (all []layout.Deposits, err error) {
		if lookedAt(m, d) {
			hashes, err := commits(m.Item)
			if err != nil {
				return nil, err
			}
			if all, err = p.records(m.Item, hashes); err != nil {
				return nil, err
			}
		}
		is, err := swept()
		if err != nil || !is {
			return all, err
		}
		found, err := rows(m)
		known := append(slices.Clone(all), d)
		for _, r := range found {
			all = append(all, r.record(known))
		}
		return all, err
	}
}

// lookedAt reports whether there may have been looks that the record does not have: a deposit alone leaves each copy
// verified when it was written.
func lookedAt(m layout.Manifest, d layout.Deposits) bool {
	if m.Disposed != nil || len(d.Copies) > 0 {
		return true
	}
	for _, versions := range d.Targets {
		for _, c := range versions {
			if c.LastFailure != nil || !c.Verified.Equal(c.Written) {
				return true
			}
		}
	}
	return false
}

// past reads the history before a view.
type past struct {
	ledger *ledger.Ledger
	view   gitstore.View
	wanted map[layout.ItemID]bool
}

// commits lists, of the items that are wanted, those that recorded looks and changed a path, the newest first; "": any.
func (p *past) commits(ctx context.Context, path string) (map[layout.ItemID][]gitstore.Hash, error) {
	found := map[layout.ItemID][]gitstore.Hash{}
	answered := map[string]bool{} // what others committed, and was taken back
	for c, err := range p.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: path, From: p.view.Commit()}) {
		if err != nil {
			return nil, err
		}
		var id layout.ItemID
		looked := false
		for _, t := range c.Trailers {
			switch t.Key {
			case "Bagpipe-Item":
				id = layout.ItemID(t.Value)
			case "Bagpipe-Fixity", "Bagpipe-Recovered", "Bagpipe-Target", "Bagpipe-Disposal":
				looked = true
			case "Bagpipe-Answers":
				answered[t.Value] = true
			}
		}
		if looked && p.wanted[id] && !answered[c.Hash.String()] {
			found[id] = append(found[id], c.Hash)
		}
	}
	return found, nil
}

// records reads an item's deposits.json at commits and their parents.
func (p *past) records(id layout.ItemID, commits []gitstore.Hash) (all []layout.Deposits, err error) {
	path := layout.ItemDir(id) + "/" + layout.DepositsJSON
	var last []byte
	read := func(v gitstore.View) error {
		data, err := ledger.ReadOptional(v, path)
		if err != nil || data == nil || bytes.Equal(data, last) {
			return err
		}
		last = data
		// One that cannot be read tells nothing: whoever committed it was answered.
		if d, err := layout.DecodeDeposits(data); err == nil {
			all = append(all, d)
		}
		return nil
	}
	for _, h := range commits {
		v, about, err := p.view.At(h)
		if err != nil {
			return nil, err
		}
		if err := read(v); err != nil {
			return nil, err
		}
		if len(about.Parents) == 0 {
			continue
		}
		if v, _, err = p.view.At(about.Parents[0]); err != nil {
			return nil, err
		}
		if err := read(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// seenRow is what a sweep saw of an item of which no copy was, or had been, damaged.
type seenRow struct {
	at     time.Time
	copies string // names, each with a newline after it; rows share them
}

// rows reads the pages of sweeps that began after a time: the rows of one item, or, of "", of all that are wanted.
func (p *past) rows(ctx context.Context, only layout.ItemID, after time.Time) (map[layout.ItemID][]seenRow, error) {
	found := map[layout.ItemID][]seenRow{}
	words := map[string]string{}
	first := ""
	if !after.IsZero() {
		key, err := layout.NewIntentKey(after, strings.NewReader(strings.Repeat("\x00", 16)), "")
		if err != nil {
			return nil, err
		}
		first = after.UTC().Format(SweepDir+"/2006/01/") + string(key)
	}
	err := records(p.view, func(path string) (bool, error) {
		if path < first || ctx.Err() != nil {
			return false, ctx.Err()
		}
		if !isPage(path) {
			return true, nil
		}
		data, err := p.view.ReadFile(path)
		if err != nil {
			return false, err
		}
		var of page
		if only != "" && !bytes.Contains(data, []byte(only)) || json.Unmarshal(data, &of) != nil {
			return true, nil // of other items, or somebody's
		}
		for id, r := range of.Items {
			names := r.sound()
			if names == "" || !p.wanted[id] || only != "" && id != only {
				continue
			}
			if words[names] == "" {
				words[names] = names
			}
			found[id] = append(found[id], seenRow{r.At, words[names]})
		}
		return true, nil
	})
	return found, err
}

// sound names the copies that were seen; "" where the look is in the item's record, which has more of it.
func (r row) sound() string {
	var names strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
		switch {
		case r.Recorded || r.Copies[name] != howOK && r.Copies[name] != howAway:
			return ""
		case r.Copies[name] == howOK:
			names.WriteString(name + "\n")
		}
	}
	return names.String()
}

// record is a row as a deposits.json would have it; known are others of the item.
func (r seenRow) record(known []layout.Deposits) layout.Deposits {
	d := layout.Deposits{Copies: map[string]layout.FixityCheck{}, Targets: map[layout.Name]map[int]layout.DepositCopy{}}
	for name := range strings.SplitSeq(strings.TrimSuffix(r.copies, "\n"), "\n") {
		if slices.Contains([]string{Source, Content, Derived, Deposit}, name) {
			d.Copies[name] = layout.FixityCheck{At: r.at, Outcome: layout.FixityPassed}
			continue
		}
		name, n, older := strings.Cut(name, " v") // copyName
		version, err := strconv.Atoi(n)
		if !older || err != nil {
			version = versionThen(known, layout.Name(name), r.at)
		}
		d.Note(layout.Name(name), version, layout.DepositCopy{Verified: r.at, Outcome: layout.FixityPassed})
	}
	return d
}

// versionThen is the newest version that a target had at a time.
func versionThen(known []layout.Deposits, name layout.Name, at time.Time) int {
	newest := 1
	for _, d := range known {
		for version, c := range d.Targets[name] {
			if !c.Written.After(at) {
				newest = max(newest, version)
			}
		}
	}
	return newest
}
