package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

const (
	recordsAtOnce   = 500 // in one commit
	shiftsMeanwhile = 2   // of new items that are made while a scan goes on
)

// keep has a folder's record committed with the next flush.
func (s *scan) keep(n *node) { s.records = append(s.records, n) }

// flushSome commits when enough has come together.
func (s *scan) flushSome(ctx context.Context) error {
	if len(s.records) < recordsAtOnce && len(s.fresh)+len(s.changed) < objectsAtOnce {
		return nil
	}
	return s.flush(ctx, shiftsMeanwhile)
}

// flush commits versions, then records, then has new items made. It does not wait for the last shifts of these.
// Where the workspace has no room, nothing is: the next scan goes on from there.
func (s *scan) flush(ctx context.Context, but int) error {
	if len(s.changed)+len(s.fresh) > 0 {
		if err := s.k.intake.Low(); err != nil {
			return err
		}
	}
	if len(s.changed) > 0 {
		err := s.admitted(ctx, s.crew.begin(ctx, s.changed, s.refresh))
		if s.changed = nil; err != nil {
			return err
		}
	}
	if err := s.commit(ctx, append(s.unfinishedOf(s.now), s.records...)); err != nil {
		return err
	}
	s.records = nil
	if len(s.fresh) > 0 {
		s.making = append(s.making, s.crew.begin(ctx, s.fresh, s.register))
	}
	s.fresh = nil
	s.tell("recognise", s.report.Folders, int(s.asked.Load()))
	for len(s.making) > but {
		oldest := s.making[0]
		s.making = s.making[1:]
		if err := s.admitted(ctx, oldest); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unfinishedOf gives the changed folders above those whose records are to be committed, outermost first.
// They are committed as not recognised yet: a scan that is killed would leave records below them that
// no other one leads to.
func (k *stock) unfinishedOf(now tree) (above []*node) {
	seen := map[string]bool{}
	for _, n := range k.records {
		seen[n.path] = true
	}
	for _, n := range k.records {
		for path := n.path; path != ""; {
			if path = parentOf(path); seen[path] {
				continue
			}
			seen[path] = true
			if up := now[path]; up != nil && up.changed {
				up.rules = ""
				above = append(above, up)
			}
		}
	}
	slices.SortFunc(above, func(a, b *node) int { return cmpPath(a.path, b.path) })
	return above
}

// finish commits what is left, and registers what a scan before left unregistered.
func (s *scan) finish(ctx context.Context) error {
	if err := s.flush(ctx, 0); err != nil {
		return err
	}
	if len(s.drop) > 0 {
		if err := s.remove(ctx, s.drop); err != nil {
			return err
		}
	}
	if s.complete {
		return s.flush(ctx, 0)
	}
	for _, n := range s.now {
		sets := n.sets()
		for i := range n.all() {
			if e := &n.all()[i]; e.item != "" && e.isThere() && e.verdict.isObject() {
				o := object{path: join(n.path, e.name), in: n, name: e.name, with: sets[mainText(e.name)], item: e.item}
				o.told = o.toldOf(e, nil)
				s.fresh = append(s.fresh, o)
			}
		}
	}
	if err := s.flush(ctx, 0); err != nil {
		return err
	}
	s.complete = true
	return s.flush(ctx, 0) // of what was refused meanwhile
}

// commit makes records durable, some hundreds a commit.
func (s *scan) commit(ctx context.Context, records []*node) error {
	for len(records) > 0 {
		some := records[:min(len(records), recordsAtOnce)]
		records = records[len(some):]
		files := map[string][]byte{}
		for _, n := range some {
			if !n.changed {
				continue // twice in the list
			}
			dir := recordDir(s.cat.Name, n.path)
			for name, data := range n.files() {
				files[dir+"/"+name] = data
			}
			n.changed = false
			s.report.Records++
		}
		if len(files) == 0 {
			continue
		}
		if err := s.put(ctx, files, len(some)); err != nil {
			for _, n := range some {
				n.changed = true
			}
			return err
		}
	}
	return nil
}

// remove takes the records of folders away that moved.
func (s *scan) remove(ctx context.Context, gone []*node) error {
	files := map[string][]byte{}
	for _, n := range gone {
		if n != s.now[n.path] {
			continue // another folder is there now
		}
		dir := recordDir(s.cat.Name, n.path)
		files[dir+"/"+folderFile] = nil
		for i := range n.pages {
			if n.pages > 1 {
				files[dir+"/"+pageFile(i)] = nil
			}
		}
		delete(s.now, n.path)
	}
	if len(files) == 0 {
		return nil
	}
	return s.put(ctx, files, len(gone))
}

func (s *scan) put(ctx context.Context, files map[string][]byte, folders int) error {
	who := s.k.ledger.ByRobot(intake.RegisterStep)
	_, err := s.k.ledger.Store.CommitTo(ctx, treeDir(s.cat.Name), func(v gitstore.Reader) (*gitstore.Change, error) {
		if err := s.force.check(v); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: files, Author: who.Author, Message: ledger.Message(
			fmt.Sprintf("catalog: scanned %s (folders: %d)", s.cat.Name, folders), "",
			[]ledger.Trailer{{"Bagpipe-Catalog", string(s.cat.Name)}, {"Bagpipe-Folders", strconv.Itoa(folders)}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err != nil {
		err = fmt.Errorf("commit the records of catalog %s: %w", s.cat.Name, err)
	}
	return err
}

// admitted waits for objects. What concerns one alone is noted with it, and does not stop the others.
func (s *scan) admitted(ctx context.Context, given *shift) error {
	if err := given.wait(ctx, readingTold, s.tellReading); err != nil {
		return err
	}
	for i, err := range given.errs {
		if o := given.objects[i]; err != nil {
			s.failed(o, err)
		} else if e := o.entry(); o.known && !o.carried && e != nil && e.waits {
			e.waits, o.in.changed = false, true
			s.keep(o.in)
		}
	}
	return nil
}

// readingTold is how often it is told of objects that are read for long.
const readingTold = time.Second

// tellReading tells of the largest object that is read.
func (s *scan) tellReading(undone []object) {
	if s.o.Told == nil || len(undone) == 0 {
		return
	}
	r := &Reading{}
	for _, o := range undone {
		if e := o.entry(); e != nil && (r.Path == "" || e.size > r.Size) {
			r.Path, r.Size = layout.EncodePath(o.path), e.size
		}
	}
	s.o.Told(Progress{"register", s.report.Folders, int(s.asked.Load()), r})
}

func (s *scan) inPlace(o object) intake.InPlace {
	return intake.InPlace{Item: o.item, Catalog: s.cat, Path: o.path, With: o.with, Workflow: o.workflow, New: o.fresh, Seen: s.shelves, Told: o.told, Anew: o.anew, Same: o.same, Carried: o.carried}
}

func (s *scan) register(ctx context.Context, o object) error {
	if err := errors.Join(s.force.checkNow(), ctx.Err()); err != nil {
		return err
	}
	made, err := s.k.intake.RegisterInPlace(ctx, s.inPlace(o))
	if made && err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.report.New++
	}
	return err
}

func (s *scan) refresh(ctx context.Context, o object) error {
	if err := errors.Join(s.force.checkNow(), ctx.Err()); err != nil {
		return err
	}
	is, err := s.k.intake.RefreshInPlace(ctx, s.inPlace(o))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.New += b2int(is.New)
	s.report.Versions += b2int(is.Version > 0)
	s.report.Anew += b2int(is.Anew)
	return nil
}

// failed notes an object that could not be an item, or its next version, now or at all.
func (s *scan) failed(o object, err error) {
	e := o.entry()
	if e == nil {
		return
	}
	defer s.keep(o.in)
	var no *intake.Refused
	if errors.As(err, &no) {
		e.verdict, e.waits, o.in.changed = refused, false, true
		if !o.known {
			e.item = ""
		}
		o.in.note(o.name, no.Reason)
		s.problem(o.path, no.Reason)
		return
	}
	var waits *inbox.WaitsError
	s.report.Later++
	if !errors.Is(err, intake.ErrUnsettled) && !errors.As(err, &waits) && !fault.Is(err, fault.Busy) {
		s.problem(o.path, err.Error())
		o.in.wait(e, err.Error())
		return
	}
	o.in.changed = true
	if o.anew { // the next scan asks it, too
		o.in.redo, o.in.rules = true, ""
	}
	if n := s.now[o.path]; e.kind == folder && n != nil {
		n.rules, n.changed = "", true // looked at again by the next scan
		s.keep(n)
		return
	}
	e.mtime, e.ctime = 0, 0
}
