package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// JoinTrees gives what is to change in the files of over, one of the commits a and b, so that they
// hold what those of the other do as well; base is what both began from. What it makes is the same over
// either, and the fewer files the other changed, the sooner it is made.
func JoinTrees(ctx context.Context, l *ledger.Ledger, base, a, b, over gitstore.Hash) (map[string][]byte, error) {
	files, _, err := joinTrees(ctx, joining{ledger: l}, base, a, b, over)
	return files, err
}

// JoinTreesBefore is JoinTrees as it was when two versions of an item that both were the next one were joined key by key:
// joins of then stay joins.
func JoinTreesBefore(ctx context.Context, l *ledger.Ledger, base, a, b, over gitstore.Hash) (map[string][]byte, error) {
	files, _, err := joinTrees(ctx, joining{ledger: l, before: true}, base, a, b, over)
	return files, err
}

// joinTrees is JoinTrees; it gives the items besides whose records both sides changed.
func joinTrees(ctx context.Context, j joining, base, a, b, over gitstore.Hash) (files map[string][]byte, both map[layout.ItemID]bool, err error) {
	reading := gitstore.NewScanning(j.ledger.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	if err := j.open(reading.Scan(), base, a, b); err != nil {
		return nil, nil, err
	}
	other := j.b
	if j.over = j.a; over == b {
		j.over, other = j.b, j.a
	}
	theirs, err := changes(ctx, reading.Scan(), j.base, other, nil, func(string) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	their, err := j.touched(theirs)
	if err != nil {
		return nil, nil, err
	}
	ours, err := changes(ctx, reading.Scan(), j.base, j.over, their.folders(), func(p string) bool { // of the rest it counts that they changed
		_, clash := theirs[p]
		return clash || layout.IsRetiredPath(p)
	})
	if err != nil {
		return nil, nil, err
	}
	return j.all(ctx, ours, theirs, their)
}

// changedMore gives the one of two commits that changed more files since base: the first, where they
// changed as many. It looks at some of both's, and then at more, so that it costs little where one changed few.
func changedMore(ctx context.Context, l *ledger.Ledger, base, a, b gitstore.Hash) (over gitstore.Hash, err error) {
	reading := gitstore.NewScanning(l.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	j := joining{ledger: l}
	if err := j.open(reading.Scan(), base, a, b); err != nil {
		return a, err
	}
	read := [2]*gitstore.Scan{reading.Scan(), reading.Scan()}
	for most := 50; ; most *= 8 {
		var of [2]int
		counting, ctx := errgroup.WithContext(ctx)
		for i, v := range []gitstore.View{j.a, j.b} {
			counting.Go(func() (err error) {
				of[i], err = j.count(ctx, read[i], v, most)
				return err
			})
		}
		switch err := counting.Wait(); {
		case err != nil || of[1] < most && of[1] <= of[0]:
			return a, err
		case of[0] < most:
			return b, nil
		}
	}
}

// count counts the files that differ from the base, at most so many.
func (j *joining) count(ctx context.Context, read *gitstore.Scan, v gitstore.View, most int) (n int, err error) {
	enough := errors.New("enough")
	err = read.Diff(j.base, v, func(gitstore.Difference) error {
		if n++; n == most {
			return enough
		}
		return ctx.Err()
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return n, err
}

// all joins what either side changed.
func (j *joining) all(ctx context.Context, ours, theirs map[string][]byte, other side) (files map[string][]byte, both map[layout.ItemID]bool, err error) {
	mine, err := j.touched(ours)
	if err != nil {
		return nil, nil, err
	}
	files, both = map[string][]byte{}, map[layout.ItemID]bool{}
	for id := range other.lines {
		both[id] = mine.records[id] || mine.beside[id]
	}
	for p, data := range theirs {
		id, rest, ok := layout.ItemOfPath(p)
		_, moved := mine.lines[id]
		if ok && (ledger.IsRecord(rest) && mine.records[id] || moved) {
			both[id] = true
			continue
		}
		if layout.IsRetiredPath(p) {
			continue
		}
		here, clash := ours[p]
		if !clash {
			files[p] = data
			continue
		}
		of := [2][]byte{here, data}
		if j.over == j.b {
			of = [2][]byte{data, here}
		}
		if files[p], err = j.file(ctx, p, of[0], of[1]); err != nil {
			return nil, nil, err
		}
		if files[p] == nil && here == nil {
			delete(files, p)
		}
	}
	stood := map[layout.ItemID]layout.Standing{} // where the items stand, of which a line is to change
	for id, is := range both {
		if !is { // the other side alone retired or recalled it
			stood[id] = other.lines[id]
			continue
		}
		if err := j.item(id, files, stood); err != nil {
			return nil, nil, err
		}
	}
	if err := j.lines(files, stood); err != nil {
		return nil, nil, err
	}
	return files, both, j.bury(files)
}

// side are the items that one side changed.
type side struct {
	records map[layout.ItemID]bool            // their records or lines
	beside  map[layout.ItemID]bool            // other files of their folders
	lines   map[layout.ItemID]layout.Standing // as they are now
}

func (j *joining) touched(files map[string][]byte) (t side, err error) {
	t = side{records: map[layout.ItemID]bool{}, beside: map[layout.ItemID]bool{}, lines: map[layout.ItemID]layout.Standing{}}
	for p, data := range files {
		if id, rest, ok := layout.ItemOfPath(p); ok && ledger.IsRecord(rest) {
			t.records[id] = true
		} else if ok {
			t.beside[id] = true
		}
		lines, err := ledger.RetiredLines(j.base, gitstore.FileChange{Path: p, Data: data})
		if err != nil {
			return t, err
		}
		for id, s := range lines {
			t.records[id], t.lines[id] = true, s
		}
	}
	return t, nil
}

// folders tells the folders in which what the side changed may have changed elsewhere, too: all but those of other items.
func (t side) folders() func(dir string) bool {
	known := map[string]bool{}
	for _, items := range []map[layout.ItemID]bool{t.records, t.beside} {
		for id := range items {
			for dir := layout.ItemDir(id); dir != layout.ItemsDir && !known[dir]; dir = path.Dir(dir) {
				known[dir] = true
			}
		}
	}
	return func(dir string) bool {
		_, _, within := layout.ItemOfPath(dir)
		return known[dir] || within || !strings.HasPrefix(dir, layout.ItemsDir+"/")
	}
}

// lines writes where items stand that are retired, or not any more.
func (j *joining) lines(files map[string][]byte, stood map[layout.ItemID]layout.Standing) error {
	for _, id := range slices.Sorted(maps.Keys(stood)) {
		if err := ledger.SetRetired(j.over, id, stood[id], files); err != nil {
			return err
		}
	}
	return nil
}

// bury leaves out what would come back of items that were disposed of.
func (j *joining) bury(files map[string][]byte) error {
	buried := map[layout.ItemID]bool{}
	for p, data := range files {
		id, rest, ok := layout.ItemOfPath(p)
		if !ok || ledger.IsRecord(rest) || data == nil {
			continue
		}
		if _, known := buried[id]; !known {
			name := layout.ItemDir(id) + "/" + layout.ManifestJSON
			manifest := files[name]
			if manifest == nil {
				var err error
				if manifest, err = ledger.ReadOptional(j.over, name); err != nil {
					return err
				}
			}
			buried[id] = tombstone(manifest) != nil
		}
		if buried[id] {
			delete(files, p)
		}
	}
	return nil
}

// changes are the files that differ in the folders that enter does not refuse; nil is one that is
// gone, or is not wanted.
func changes(ctx context.Context, read *gitstore.Scan, from, to gitstore.View, enter, wanted func(path string) bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	return files, read.DiffWithin(from, to, enter, func(d gitstore.Difference) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !wanted(d.Path) {
			files[d.Path] = nil
			return nil
		}
		files[d.Path], err = read.Blob(d, d.Is)
		return err
	})
}

// joining reads the three commits of a join.
type joining struct {
	ledger     *ledger.Ledger
	base, a, b gitstore.View
	over       gitstore.View // a or b: whose files are changed
	before     bool          // see joinManifestsBefore
}

func (j *joining) open(read *gitstore.Scan, base, a, b gitstore.Hash) (err error) {
	for h, v := range map[gitstore.Hash]*gitstore.View{base: &j.base, a: &j.a, b: &j.b} {
		if *v, err = read.At(h); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile gives a file of either side: pinned definitions, whose names are their digests.
func (j *joining) ReadFile(name string) ([]byte, error) {
	if data, err := j.a.ReadFile(name); err == nil {
		return data, nil
	}
	return j.b.ReadFile(name)
}

// item joins the records of an item that both sides changed.
func (j *joining) item(id layout.ItemID, files map[string][]byte, stood map[layout.ItemID]layout.Standing) error {
	var of [3]ledger.Records
	for i, v := range []gitstore.View{j.base, j.a, j.b} {
		var err error
		if of[i], err = ledger.StandingOf(j.ledger, v, id); err != nil {
			return err
		}
	}
	manifests := joinManifests
	if j.before {
		manifests = joinManifestsBefore
	}
	united, err := joinRecords(id, of[0], of[1], of[2], j.ledger.PlansAt(j), manifests)
	if err != nil {
		return fmt.Errorf("item %s: %w", id, err)
	}
	none := layout.Standing{}
	if of[1].Retired != none || of[2].Retired != none {
		if stood[id] = united.Retired; united.Retired != none && j.wentOn(id, of) {
			united.Retired, stood[id] = none, none
		}
	}
	here := of[1]
	if j.over == j.b {
		here = of[2]
	}
	for p, data := range here.Changes(id, united) {
		files[p] = data
	}
	if of[1].Retired == none && of[2].Retired == none {
		return nil
	}
	return j.beside(id, of, united.Retired != none, files)
}

// wentOn reports whether a side that did not retire an item changed what stands beside its records.
func (j *joining) wentOn(id layout.ItemID, of [3]ledger.Records) bool {
	for i, v := range []gitstore.View{j.a, j.b} {
		for _, name := range ledger.SideNames {
			p := layout.ItemDir(id) + "/" + name
			was, errA := ledger.ReadOptional(j.base, p)
			is, errB := ledger.ReadOptional(v, p)
			if of[i+1].Retired == (layout.Standing{}) && errA == nil && errB == nil && string(was) != string(is) {
				return true
			}
		}
	}
	return false
}

// beside puts what stands beside an item's records where these are: out of the tip, or, of an item
// that is not retired any more, as it stands on either side or last stood.
func (j *joining) beside(id layout.ItemID, of [3]ledger.Records, retired bool, files map[string][]byte) error {
	for _, name := range ledger.SideNames {
		p := layout.ItemDir(id) + "/" + name
		here, err := ledger.ReadOptional(j.over, p)
		if err != nil {
			return err
		}
		if retired {
			if delete(files, p); here != nil {
				files[p] = nil
			}
			continue
		}
		var sides [2][]byte
		for i, v := range []gitstore.View{j.a, j.b} {
			if last, ok, err := ledger.Stood(j.ledger, v, id); err != nil {
				return err
			} else if ok && of[i+1].Retired != (layout.Standing{}) {
				v = last
			}
			if sides[i], err = ledger.ReadOptional(v, p); err != nil {
				return err
			}
		}
		was, err := ledger.ReadOptional(j.base, p)
		if err != nil {
			return err
		}
		united := sides[0]
		if string(sides[0]) == string(was) || united == nil {
			united = sides[1]
		} else if string(sides[1]) != string(was) && sides[1] != nil {
			if united, _, err = JoinJSON(was, sides[0], sides[1]); err != nil {
				return err
			}
		}
		if delete(files, p); string(united) != string(here) {
			files[p] = united
		}
	}
	return nil
}

// file joins another file that both changed: what was removed on one side stays, records by
// key, the rest by lines. Lines of settings that both changed stand there twice, between marks, so that
// each site goes on by its own until somebody chooses; of other files one of the two is taken, the same
// at every site. For the list of those who sign see joinSigners.
func (j *joining) file(ctx context.Context, p string, a, b []byte) ([]byte, error) {
	greater := a
	if string(a) < string(b) {
		greater = b
	}
	switch {
	case p == layout.SignersFile:
		return j.signers(ctx, a, b)
	case a == nil || b == nil || string(a) == string(b):
		return greater, nil
	case strings.HasPrefix(p, layout.PinnedDir+"/"):
		if layout.PinnedPath(ledger.DigestOf(a)) == p {
			return a, nil
		}
		return b, nil
	}
	was, err := ledger.ReadOptional(j.base, p)
	if err != nil {
		return nil, err
	}
	if p == layout.ControlsFile {
		return joinControls(was, a, b), nil
	}
	if path.Ext(p) == ".json" {
		if united, _, err := JoinJSON(was, a, b); err == nil {
			return united, nil
		}
		return greater, nil
	}
	united, clean, err := gitstore.MergeLines(ctx, was, a, b, j.a.Commit().String()[:12], j.b.Commit().String()[:12])
	if err != nil || clean || isWritten(p) {
		return united, err
	}
	return greater, nil
}

// isWritten reports whether a file is one that people write as settings.
func isWritten(p string) bool { return path.Ext(p) == ".yaml" || path.Ext(p) == ".geojson" }
