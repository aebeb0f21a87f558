package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// lookFirst looks without a last look, as in a workspace that has its first rule, or one that lost .bagpipe: what is
// to be sent, or asks a person, goes on by its records, and against the rules of a target are held the items that
// changed since these came into force.
func lookFirst(ctx context.Context, k *Keeper, v gitstore.View, b book) error {
	had := map[layout.Name]bool{}
	var mu sync.Mutex // guards had, k.open and k.asks
	err := each(ctx, k.ledger, v, gitstore.Hash{}, func(o *object) {
		mu.Lock()
		defer mu.Unlock()
		noteOpen(k, o)
		for to := range o.delivery.Targets {
			had[to] = true
		}
	})
	if err != nil {
		return err
	}
	since, err := inForceSince(ctx, k.ledger.Store, b, had)
	if err != nil {
		return err
	}
	for tree, of := range since {
		some := b
		some.only = of
		changed, err := k.weighSince(ctx, v, tree, some)
		if err != nil {
			return err
		}
		if err := k.commit(ctx, changed, "weighed", some.weigher(k.ledger)); err != nil {
			return err
		}
	}
	return nil
}

// inForceSince gives the trees before the commits by which the rules of targets came into force as they are: of a target
// that no item has an account of, before its first rule. The zero tree is of those that always were.
func inForceSince(ctx context.Context, s *gitstore.Store, b book, had map[layout.Name]bool) (map[gitstore.Hash]map[layout.Name]bool, error) {
	since, left := map[gitstore.Hash]map[layout.Name]bool{}, map[layout.Name]bool{}
	for _, r := range b.rules {
		left[layout.Name(r.To)] = true
	}
	found := func(to layout.Name, tree gitstore.Hash) {
		if since[tree] == nil {
			since[tree] = map[layout.Name]bool{}
		}
		since[tree][to] = true
		delete(left, to)
	}
	if len(left) == 0 {
		return since, nil
	}
	for c, err := range s.History(ctx, gitstore.HistoryOptions{Path: layout.RulesDir}) {
		if err != nil {
			return nil, fmt.Errorf("look when delivery rules came into force: %w", err)
		}
		now, before := map[layout.Name]string{}, map[layout.Name]string{}
		var tree gitstore.Hash
		v, err := s.At(c.Hash)
		if err == nil {
			err = rulesAt(v, now)
		}
		if err == nil && len(c.Parents) > 0 {
			if v, err = s.At(c.Parents[0]); err == nil {
				tree, err = v.Tree(), rulesAt(v, before)
			}
		}
		if err != nil {
			return nil, err
		}
		for to := range left {
			if now[to] != before[to] && (had[to] || before[to] == "") {
				found(to, tree)
			}
		}
		if len(left) == 0 {
			break
		}
	}
	for to := range left {
		found(to, gitstore.Hash{})
	}
	return since, nil
}

// rulesAt gives the delivery rules of each target as they were written then. A file that cannot be read has none.
func rulesAt(v gitstore.View, of map[layout.Name]string) error {
	entries, err := v.List(layout.RulesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(layout.RulesDir, e.Name)
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		data, err := v.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := settings.ParseRules(name, data)
		if err != nil {
			continue
		}
		for _, d := range f.Delivery {
			of[layout.Name(d.To)] += fmt.Sprintf("%q %q\n", d.For, d.Approve)
		}
	}
	return nil
}
