package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"bagpipe/engine/intake"
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// object is an entry that is, or is to be, an item.
type object struct {
	path     string
	in       *node
	name     string
	with     []string // the files beside it that are the object, too, sorted
	item     layout.ItemID
	workflow string
	known    bool // it was an item before this scan
	fresh    bool // its identifier was made by this scan
	anew     bool // other rules are in force than it was recognised by
	same     bool // neither it nor what is in it has changed
	carried  bool // it lies elsewhere now, and cannot be looked into
	told     *intake.Told
}

// entry finds the object's entry, which moves when entries are forgotten.
func (o object) entry() *entry { return o.in.find(o.name) }

// visit recognises a folder's entries that need it, then what is below, and notes the objects
// that are new or have changed. rules says by what the folder above was recognised; inside
// reports whether the folder is in an object, dirty whether one of the entries there changed.
func (s *scan) visit(ctx context.Context, path, rules string, inside bool) (dirty bool, err error) {
	n := s.now[path]
	if n == nil || n.state == Unread && n.rules == "" {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	rules = s.rulesIn(n, rules)
	due := n.rules == "" // it was committed before it was recognised
	again := n.state != Unread && (s.o.Full || due || n.rules != rules)
	var fresh []object
	if inside {
		dirty, err = s.visitPart(ctx, n, rules, due)
	} else {
		fresh, err = s.visitFree(ctx, n, rules, due, again)
	}
	if err != nil {
		return dirty, err
	}
	// What is not there, or cannot be read, says what other rules say once it can be.
	if n.rules != rules && !n.redo && (n.state == Present || due && n.state == Unconfirmed) {
		n.rules, n.changed = rules, true
	}
	if n.changed {
		s.keep(n)
	}
	s.fresh = append(s.fresh, fresh...) // their identifiers are committed before them
	if !inside {
		return dirty, s.flushSome(ctx)
	}
	return dirty, nil
}

// visitPart makes all in a folder parts of the object above it.
func (s *scan) visitPart(ctx context.Context, n *node, rules string, due bool) (dirty bool, err error) {
	dirty = due || n.changed
	for i := range n.all() {
		e := &n.all()[i]
		if !e.isThere() {
			continue
		}
		turned := e.verdict != part
		if turned || e.waits {
			e.verdict, e.waits, n.changed = part, false, true
		}
		if e.kind != folder {
			continue
		}
		path := join(n.path, e.name)
		if !due && !turned && s.isIdle(path, e) {
			continue
		}
		below, err := s.visit(ctx, path, rules, true)
		if err != nil {
			return dirty, err
		}
		dirty = dirty || below
	}
	return dirty, nil
}

// visitFree recognises a folder's entries, and gives the objects that are new.
func (s *scan) visitFree(ctx context.Context, n *node, rules string, due, again bool) (fresh []object, err error) {
	said, err := s.recogniseAll(ctx, n, again)
	if err != nil {
		return nil, err
	}
	sets := n.sets()
	for i := range n.all() {
		e := &n.all()[i]
		if !e.isThere() {
			continue
		}
		dirty := e.fresh || due
		path := join(n.path, e.name)
		if e.kind == folder && n.state != Unread && (dirty || !s.isIdle(path, e)) {
			if !e.verdict.isWhole() {
				s.undo(path)
			}
			inheritBelow(s, path, e)
			if dirty, err = s.visit(ctx, path, rules, e.verdict.isWhole()); err != nil {
				return nil, err
			}
		}
		open := e.kind == folder && e.verdict.isObject() && s.open[path]
		if open && (dirty || e.fresh || e.moved || again || e.item == "") {
			n.wait(e, "a folder in it is unread, or has entries that are not there and that nobody said are gone")
		}
		if open || said[e.name].waits != "" { // what became of it is asked once it can be looked into
			if e.item != "" && e.moved {
				s.changed = append(s.changed, object{path: path, in: n, name: e.name, item: e.item, known: true, carried: true})
			}
			continue
		}
		if e.verdict == refused {
			s.problem(path, n.reasons[e.name])
			continue
		}
		if !e.verdict.isObject() { // it keeps its item: a rule may be wrong for a while
			continue
		}
		o := object{path: path, in: n, name: e.name, with: sets[mainText(e.name)], item: e.item, workflow: said[e.name].workflow}
		o.told = o.toldOf(e, nil)
		if e.item == "" && n.state != Present && !e.fresh { // it may not be there
			continue
		}
		var stands layout.ItemID
		if e.item == "" {
			if stands, err = standing(ctx, s, n, path); err != nil {
				return nil, err
			}
		}
		switch {
		case e.item == "" && stands != "":
			o.item, o.known, e.item, n.changed = stands, true, stands, true
			s.changed = append(s.changed, o)
		case e.item == "":
			if e.item, err = layout.NewItemID(s.k.ledger.Random); err != nil {
				return nil, err
			}
			o.item, o.fresh, n.changed = e.item, true, true
			o.told = o.toldOf(e, said[e.name].whole)
			fresh = append(fresh, o)
		case dirty || e.fresh || e.moved || again && n.state == Present:
			o.told = o.toldOf(e, said[e.name].whole)
			o.known, o.anew, o.same = true, again || e.waits || e.back, !dirty && !e.fresh && !e.moved
			s.changed = append(s.changed, o)
		}
	}
	return fresh, nil
}

// undo takes back that a folder is part of an object which is none any more.
func (s *scan) undo(path string) {
	n := s.now[path]
	if n == nil || !slices.ContainsFunc(n.all(), func(e entry) bool { return !e.gone && e.verdict == part }) {
		return
	}
	n.rules, n.changed = "", true
	for i := range n.all() {
		n.all()[i].verdict = unknown
	}
}

// rulesIn says by what a folder's entries are recognised: the rules in force, and the rule
// files of this folder and those above.
func (s *scan) rulesIn(n *node, above string) string {
	if !n.isMarked() {
		return above
	}
	h := sha256.New()
	io.WriteString(h, above)
	if !recognise.HashMarker(h, filepath.Join(s.cat.Root, n.path)) {
		return above
	}
	return hexOf(h.Sum(nil)[:8])
}

// toldOf is a file as it was listed, with what the rules said of it; nil: not all of that is known, or there are more files.
func (o *object) toldOf(e *entry, whole *recognise.Outcome) *intake.Told {
	if e.kind != file || len(o.with) > 0 {
		return nil
	}
	return &intake.Told{Outcome: whole, Size: e.size, Inode: e.inode, Modified: e.mtime}
}

// recogniseAll asks the rules of the entries that need it, side by side, and gives what they say of
// objects.
func (s *scan) recogniseAll(ctx context.Context, n *node, again bool) (of map[string]recognised, err error) {
	var due []*entry
	var sets map[string]recognised
	var shelf *recognise.Shelf
	if again || n.changed || n.tells() { // else all that is together is as it was
		shelf = s.shelves.Shelf(n.path)
		if sets, err = together(ctx, s, shelf, n, again); err != nil {
			return nil, err
		}
	}
	for i := range n.all() {
		e := &n.all()[i]
		if !e.isThere() || sets[e.name].stays {
			continue
		}
		_, is := sets[e.name]
		if is || again || e.fresh || e.waits || e.verdict == part || sets != nil && e.verdict == with || e.kind == folder && s.touched[join(n.path, e.name)] {
			due = append(due, e)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	if shelf == nil {
		shelf = s.shelves.Shelf(n.path)
	}
	said, err := s.askAll(ctx, shelf, n, due, sets)
	if err := errors.Join(err, shelf.Close()); err != nil {
		return nil, err
	}
	s.asked.Add(int64(len(due)))
	of = map[string]recognised{}
	for i, e := range due {
		if e.verdict != said[i].verdict {
			// Whether it is refused still, or as it was when it was an object, only a look at its content tells.
			e.fresh = e.fresh || e.verdict == refused || e.item != "" && !e.verdict.isObject()
			e.verdict, n.changed = said[i].verdict, true
		}
		if said[i].of != "" {
			n.note(e.name, said[i].of)
		}
		if said[i].workflow != "" || said[i].whole != nil || said[i].waits != "" {
			of[e.name] = said[i]
		}
		switch r := said[i]; {
		case r.vanished:
		case r.waits != "":
			n.wait(e, r.waits)
		case e.waits && e.item != "" && e.verdict.isObject():
			e.fresh = true // it waits until the item is of what is there
		case e.waits:
			e.waits, n.changed = false, true
		}
	}
	return of, nil
}

// askAll asks the rules of entries: first of their names alone, then, side by side, of those that must
// be looked at.
func (s *scan) askAll(ctx context.Context, shelf *recognise.Shelf, n *node, due []*entry, sets map[string]recognised) ([]recognised, error) {
	said := make([]recognised, len(due))
	var looks []int
	passed := n.path != "" && slices.ContainsFunc(strings.Split(n.path, "/"), s.passed)
	for i, e := range due {
		if r, is := sets[e.name]; is {
			said[i] = r
			continue
		}
		if passed || s.passed(e.name) {
			said[i].verdict = no
			continue
		}
		known := false
		var err error
		if said[i], known, err = byName(ctx, shelf, n, e); err != nil {
			return nil, err
		}
		if !known {
			looks = append(looks, i)
		}
	}
	var next atomic.Int64
	var g errgroup.Group
	for range min(len(looks), 2*runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for {
				at := int(next.Add(1)) - 1
				if at >= len(looks) {
					return nil
				}
				i := looks[at]
				var err error
				if said[i], err = s.recognise(ctx, shelf, n.path, due[i]); err != nil {
					return err
				}
			}
		})
	}
	err := g.Wait()
	for i, e := range due {
		if said[i].verdict.isObject() && s.book.KeepsOut(e.name, true) {
			said[i] = recognised{verdict: no}
		}
	}
	return said, err
}

// byName asks what the names of entries tell. In a folder whose entries may be gone nothing is told by them.
func byName(ctx context.Context, shelf *recognise.Shelf, n *node, e *entry) (r recognised, known bool, err error) {
	switch {
	case e.kind == link || e.kind == other || e.name == recognise.MarkerName && e.kind == file:
		return recognised{verdict: no}, true, nil
	case e.kind == folder || n.state != Present:
		return r, false, nil
	}
	o, known, err := shelf.ByName(ctx, e.name, e.size)
	if !known || err != nil {
		return r, false, waits(err)
	}
	return recognised{verdict: verdictOf(o, e.kind), workflow: o.Workflow}, true, nil
}

// waits leaves out that a rule file is broken: each entry that it is about tells so when it is looked at.
func waits(err error) error {
	if broken := (*layout.FileError)(nil); errors.As(err, &broken) {
		return nil
	}
	return err
}

// recognised is what the rules say of an entry.
type recognised struct {
	verdict  verdict
	workflow string
	waits    string             // why it could not be looked into
	vanished bool               // since it was listed, or its folder is unconfirmed
	stays    bool               // what it is, with files beside it: nothing is asked of it
	of       string             // the main file that it is with, as mainText has it
	whole    *recognise.Outcome // nil: more is not known
}

// recognise asks the rules of one entry.
func (s *scan) recognise(ctx context.Context, shelf *recognise.Shelf, dir string, e *entry) (recognised, error) {
	ask := shelf.File
	if e.kind == folder {
		ask = shelf.Folder
	}
	o, err := ask(ctx, e.name)
	return heard(s, dir, e, o, err)
}

// noteFault notes a mistake of a folder's rule file, for which an entry waits.
func noteFault(s *scan, is layout.FileError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[is]++
}

// tellFaults tells once of each mistake, however many wait for it.
func tellFaults(s *scan) {
	if len(s.faults) > 0 && s.report.Problems == nil {
		s.report.Problems = map[string]string{}
	}
	for is, n := range s.faults {
		wait := "1 entry waits"
		if n > 1 {
			wait = fmt.Sprintf("%d entries wait", n)
		}
		s.report.Problems[strings.TrimSuffix(is.Error(), ": "+is.Text)] = is.Text + "; " + wait + " until that is put right"
	}
}

// waiting is an entry that cannot be looked into, which stays what it was; of a folder that is unread the record says so.
func waiting(s *scan, path string, e *entry, why string) recognised {
	if n := s.now[path]; e.kind == folder && n != nil && n.state == Unread {
		why = ""
	}
	return recognised{verdict: e.verdict, waits: why}
}

func verdictOf(o *recognise.Outcome, k kind) verdict {
	switch {
	case o.Verdict == recognise.Yes && o.Rule != "":
		return yes
	case o.Verdict == recognise.Maybe && o.Rule != "":
		return maybe
	case o.Rule != "" || k == file && o.Verdict == recognise.No:
		return no
	}
	return unknown
}

// standing gives the item that stands for the object at a path and that the folder's record does not name, as others
// changed it. "": there is none, and the object is new. The items are looked through once a scan, and only where the records
// may be others than the last scan's, or one is not there that should be: an item says where its object lies.
func standing(ctx context.Context, s *scan, n *node, path string) (layout.ItemID, error) {
	if s.complete && !s.old.lacks(n.path) {
		return "", nil
	}
	if s.claims == nil {
		if err := readItems(ctx, s, s.now); err != nil {
			return "", err
		}
	}
	item := s.claims.take(placeKey(path, n.find(filepath.Base(path)).kind))
	if item != "" {
		s.mended[path] = true
	}
	return item, nil
}

// readItems reads what the items of the catalog say of their objects, of which a tree is to name some.
func readItems(ctx context.Context, s *scan, t tree) error {
	v, err := s.k.ledger.Store.Tip()
	if err == nil {
		s.claims, err = readClaims(ctx, v, s.cat.Name, t)
	}
	if err != nil {
		err = fmt.Errorf("look where the objects of catalog %s lie by its items: %w", s.cat.Name, err)
	}
	return err
}

// mendRecords takes from entries the items that they cannot be: the records may have been changed by others.
func mendRecords(ctx context.Context, s *scan) error {
	if err := readItems(ctx, s, s.old); err != nil {
		return err
	}
	there := func(path string) bool {
		_, err := os.Lstat(filepath.Join(s.cat.Root, path))
		return err == nil
	}
	for _, w := range s.claims.wrong(there) {
		if there(w.path()) { // else it moved, in a scan that was killed
			s.mended[w.path()] = true
		}
		w.entry().item, w.in.changed = "", true
	}
	return nil
}

// tellMended tells of which entries the records named no item, or a wrong one.
func tellMended(s *scan) {
	const most = 5
	if len(s.mended) == 0 {
		return
	}
	paths := slices.Sorted(maps.Keys(s.mended))
	for i := range paths {
		paths[i] = layout.EncodePath(paths[i])
	}
	more := ""
	if len(paths) > most {
		more = fmt.Sprintf(" and %d more", len(paths)-most)
		paths = paths[:most]
	}
	s.k.ledger.Warn(fmt.Sprintf("the records of catalog %s were changed by others: they named no item, or a wrong one, of %s%s; it was found out anew", s.cat.Name, strings.Join(paths, ", "), more))
}

// lacks reports whether a folder has no record although the one above it knows the folder, or has none either. Of a catalog
// that was never scanned that is so, too.
func (t tree) lacks(path string) bool {
	if t[path] != nil {
		return false
	}
	if path == "" {
		return true
	}
	above := t[parentOf(path)]
	if above == nil {
		return t.lacks(parentOf(path))
	}
	return above.findOf(path[strings.LastIndexByte(path, '/')+1:], folder) != nil
}
