package fixity

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// records gives the paths of records or pages of sweeps, the newest first.
func records(v gitstore.View, visit func(path string) (more bool, err error)) error {
	var walk func(dir string, depth int) (bool, error)
	walk = func(dir string, depth int) (bool, error) {
		entries, err := v.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		for _, e := range slices.Backward(entries) {
			at := dir + "/" + e.Name
			more := true
			switch {
			case e.IsDir && depth < 2:
				more, err = walk(at, depth+1)
			case depth == 2 && strings.HasSuffix(e.Name, ".json"):
				more, err = visit(at)
			}
			if err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	_, err := walk(SweepDir, 0)
	return err
}

func isPage(path string) bool {
	i := strings.LastIndexByte(path, '-')
	return i > 0 && len(path)-i == len("-0001.json") && !strings.ContainsAny(path[i+1:i+5], "abcdef")
}

// covers reports whether the sweep that the page is of looked at all copies at which another looks.
func (p page) covers(what Sweep) bool {
	of := cmp.Or(p.Of, OfItems)
	if of != OfItems && of != what.Of {
		return false
	}
	return len(p.At) == 0 || len(what.At) > 0 && !slices.ContainsFunc(what.At, func(name layout.Name) bool { return !slices.Contains(p.At, name) })
}

// saw reports whether a copy at which a view looks was there to be read.
func (r row) saw(w view) bool {
	for name, how := range r.Copies {
		name, _, _ = strings.Cut(name, " ") // of an older version: copyName
		own := slices.Contains([]string{Source, Content, Derived, Deposit}, name)
		if how != howAway && (own && w.local(name) || !own && w.target(layout.Name(name))) {
			return true
		}
	}
	return false
}

// seenBySweeps is when sweeps saw the copies last at which a sweep looks, of at most so many items.
func seenBySweeps(v gitstore.View, what Sweep, now time.Time, most int) (map[layout.ItemID]time.Time, error) {
	last := map[layout.ItemID]time.Time{}
	err := records(v, func(path string) (bool, error) {
		if !isPage(path) {
			return true, nil
		}
		data, err := v.ReadFile(path)
		if err != nil {
			return false, err
		}
		var p page
		if json.Unmarshal(data, &p) != nil || !p.covers(what) {
			return true, nil // somebody's, or of other copies
		}
		for id, r := range p.Items {
			if r.saw(what.view()) && r.At.After(last[id]) && !r.At.After(now.Add(clockSkew)) {
				last[id] = r.At
			}
		}
		return len(last) < most, nil
	})
	return last, err
}

// lastSweep is when the last sweep of the same copies began; zero: there was none.
func lastSweep(v gitstore.View, what Sweep) (begun time.Time, err error) {
	err = records(v, func(path string) (bool, error) {
		if isPage(path) {
			return true, nil
		}
		data, err := v.ReadFile(path)
		if err != nil {
			return false, err
		}
		var s Swept
		if json.Unmarshal(data, &s) != nil || s.Of != what.Of || !slices.Equal(s.At, what.At) {
			return true, nil
		}
		begun = s.Begun
		return false, nil
	})
	return begun, err
}
