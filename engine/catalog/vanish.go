package catalog

import (
	"cmp"
	"maps"
	"slices"

	"bagpipe/layout"
)

// The rules are: what vanished from a folder that was listed has moved, where something new has
// its inode, size and time; else it is gone, and comes back where something new has them later. A folder that moved takes along what is known of
// all below it. What has the name of another, and not its inode, is that one written anew, as by a program that
// saves, unless that one moved, or it is itself one that did. Where too much is gone at once nothing is, before a person says so.

// vanishing is the part of a scan that settles what vanished.
type vanishing struct {
	*scan
	fresh map[identity][]vanished // what is new, by what it would keep if it moved: names of one file have the same
	moved map[*node]*node         // folders that moved, and what they were before
}

// vanished is an entry that is not where it was.
type vanished struct {
	in *node
	at int
}

// identity is what a moved entry keeps.
type identity struct {
	kind        kind
	inode       uint64
	size, mtime int64
}

func (s vanishing) identityOf(dir string, e *entry, t tree) (id identity, ok bool) {
	if e.kind == link || e.kind == other {
		return id, false
	}
	id = identity{kind: e.kind, inode: e.inode, size: e.size, mtime: e.mtime}
	if e.kind == folder {
		n := t[join(dir, e.name)]
		if n == nil {
			return id, false
		}
		id.inode, id.mtime = n.inode, n.mtime
	}
	return id, true
}

// settle finds what moved, and takes the rest for gone, or asks.
func (s vanishing) settle(found []*node) {
	if len(s.old) == 0 {
		return // nothing was there to vanish
	}
	s.part(found)
	var lost []vanished
	for _, n := range found {
		if !n.changed {
			continue
		}
		for i := range n.all() {
			e := &n.all()[i]
			if e.lost {
				lost = append(lost, vanished{n, i})
			}
			if e.fresh && e.item == "" && !s.cat.Trusting() {
				if s.claims != nil && s.claims.at(placeKey(join(n.path, e.name), e.kind)) != "" {
					continue // others took its item out of the record: it is none that moved here, such as one of whose bytes it is a link
				}
				if id, ok := s.identityOf(n.path, e, s.now); ok {
					s.fresh[id] = append(s.fresh[id], vanished{n, i})
				}
			}
		}
	}
	var nowhere, left []vanished
	for _, v := range lost {
		if !s.find(v) {
			nowhere = append(nowhere, v)
		}
	}
	lost = append(lost, s.findGone()...)
	for _, n := range found {
		if n.changed && n.reunite(nil) {
			lost = append(lost, vanished{in: n})
		}
	}
	for _, v := range nowhere {
		switch e := &v.in.all()[v.at]; {
		case e.isReunited():
		case s.old.stateAbove(v.in.path) == Gone: // with the folder, which came back without it
			e.bury()
		default:
			left = append(left, v)
		}
	}
	if s.o.Check {
		for _, v := range left {
			e := &v.in.all()[v.at]
			s.report.Missing = append(s.report.Missing, layout.EncodePath(join(v.in.path, e.name)))
			s.report.Absent += s.weight(v.in.path, e)
		}
		return
	}
	s.takeForGone(left)
	for now, old := range s.moved {
		s.takeAlong(old, now)
	}
	for _, v := range lost { // now that nothing is found by its place in a folder
		v.in.forgetLost()
	}
}

// part tells folders that have the name of another, which moved, from those that are it: what is in such a one is new.
func (s vanishing) part(found []*node) {
	moved := map[string]bool{} // by the paths that others have: whether what was there did
	to := map[identity]string{}
	for _, n := range found {
		if !n.changed {
			continue
		}
		for i := range n.all() {
			e := &n.all()[i]
			path := join(n.path, e.name)
			if e.kind == folder && e.replaced && e.back {
				moved[path] = s.old[path] != nil && s.isNew(path)
			} else if id, ok := s.identityOf(n.path, e, s.now); ok && e.kind == folder && e.fresh && e.item == "" {
				to[id] = path
			}
		}
	}
	for settled := false; !settled; {
		settled = true
		for path, is := range moved {
			if !is {
				continue
			}
			there, found := to[identity{kind: folder, inode: s.old[path].inode, mtime: s.old[path].mtime}]
			if goes, had := moved[there]; !found || had && !goes {
				moved[path], settled = false, false
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(moved)) {
		n := s.now[parentOf(path)]
		if moved[path] {
			s.renew(path)
		}
		n.reunite(func(e *entry) bool { return e.kind == folder && join(n.path, e.name) == path && !moved[path] })
		n.entries = slices.DeleteFunc(n.all(), func(e entry) bool { return e.isReunited() })
	}
}

// isNew reports whether a folder, and none below it, is the one that was at its path before. One of the same time is it, as copied back.
func (s vanishing) isNew(path string) bool {
	now, old := s.now[path], s.old[path]
	if now == nil || old == nil {
		return now != nil
	}
	if now == old || now.inode == old.inode || now.mtime == old.mtime {
		return false
	}
	for i := range now.all() {
		if e := &now.all()[i]; e.kind == folder && e.isThere() && !e.lost && !s.isNew(join(path, e.name)) {
			return false
		}
	}
	return true
}

// renew forgets what is known of a folder by its name, and of all below it.
func (s vanishing) renew(path string) {
	n := s.now[path]
	if n == nil {
		return
	}
	n.entries = slices.DeleteFunc(n.all(), func(e entry) bool { return e.lost || !e.isThere() })
	n.rules, n.reasons, n.ends = "", nil, nil
	for i := range n.entries {
		e := &n.entries[i]
		e.verdict, e.item, e.waits, e.back, e.fresh = unknown, "", false, false, true
		if e.kind == folder {
			s.renew(join(path, e.name))
		}
	}
}

// findGone looks for entries that were taken for gone before, and gives those that are elsewhere:
// one was moved twice while it was scanned, or a disk came back by parts.
func (s vanishing) findGone() (found []vanished) {
	for _, path := range slices.Sorted(maps.Keys(s.now)) {
		if len(s.fresh) == 0 {
			break
		}
		n := s.now[path]
		for i := range n.all() {
			if e := &n.all()[i]; e.gone && (e.item != "" || e.kind == folder) && s.find(vanished{n, i}) {
				found = append(found, vanished{n, i})
				if !n.changed {
					n.changed = true
					s.keep(n)
				}
			}
		}
	}
	return found
}

func (n *node) forgetLost() {
	n.entries = slices.DeleteFunc(n.all(), func(e entry) bool { return e.lost })
}

// find looks for an entry that vanished among what is new. Of a folder that is not there as a
// whole, as it has changed as well, what was in it may be.
func (s vanishing) find(v vanished) bool {
	e := &v.in.all()[v.at]
	if id, ok := s.identityOf(v.in.path, e, s.old); ok {
		if all := s.fresh[id]; len(all) > 0 {
			to := slices.MinFunc(all, v.nearer)
			s.settled(id, to)
			e.lost, e.back = true, false
			s.move(v, to)
			return true
		}
	}
	n := s.old[join(v.in.path, e.name)]
	if e.kind != folder || n == nil || len(s.fresh) == 0 {
		return false
	}
	any := false
	for i := range n.all() {
		if !n.all()[i].gone {
			any = s.find(vanished{n, i}) || any
		}
	}
	if any {
		n.forgetLost()
		n.changed = true
		s.keep(n)
	}
	return false
}

// nearer compares two names of the one file that an entry was a name of: what has its name elsewhere comes first, then what is in its
// folder, then the first.
func (v vanished) nearer(a, b vanished) int {
	rank := func(to vanished) int {
		return 2*b2int(to.name() != v.name()) + b2int(to.in.path != v.in.path)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmpPath(join(a.in.path, a.name()), join(b.in.path, b.name())))
}

func (v vanished) name() string { return v.in.all()[v.at].name }

// settled takes what is known by now from what is new.
func (s vanishing) settled(id identity, is vanished) {
	if s.fresh[id] = slices.DeleteFunc(s.fresh[id], func(v vanished) bool { return v == is }); len(s.fresh[id]) == 0 {
		delete(s.fresh, id)
	}
}

// move carries what is known of an entry to where it is now.
func (s vanishing) move(from, to vanished) {
	was, is := from.in.all()[from.at], &to.in.all()[to.at]
	is.verdict, is.item, is.waits, is.moved = was.verdict, was.item, was.waits, true
	is.fresh = is.kind != folder && !s.sameMoved(&was, is)
	s.report.Moved++
	if is.kind == folder {
		s.moveBelow(join(from.in.path, was.name), join(to.in.path, is.name))
	}
}

// sameMoved is same, but for the change time, which a rename moves.
func (s vanishing) sameMoved(a, b *entry) bool { return a.size == b.size && a.mtime == b.mtime }

func (s vanishing) moveBelow(from, to string) {
	old, now := s.old[from], s.now[to]
	if old == nil || now == nil {
		return
	}
	s.drop = append(s.drop, old)
	for i := range now.all() {
		e := &now.all()[i]
		was := old.findOf(e.name, e.kind)
		if was == nil || was.gone {
			continue
		}
		if id, ok := s.identityOf(to, e, s.now); ok {
			s.settled(id, vanished{now, i})
		}
		e.verdict, e.item, e.waits, e.moved = was.verdict, was.item, was.waits, true
		e.fresh = e.kind != folder && (was.size != e.size || was.mtime != e.mtime || was.ctime != e.ctime || was.inode != e.inode)
		if e.kind == folder {
			s.moveBelow(join(from, e.name), join(to, e.name))
		}
	}
	for i := range old.all() { // renamed within, too
		if was := &old.all()[i]; !was.gone && now.findOf(was.name, was.kind) == nil {
			s.find(vanished{old, i})
		}
	}
	s.moved[now] = old
	now.rules = old.rules
}

// takeAlong puts into a folder that moved what was gone from it before, which may be an item, or have items below it.
func (s vanishing) takeAlong(old, now *node) {
	var gone []entry
	for _, e := range old.all() {
		if e.lost || now.findOf(e.name, e.kind) != nil || e.kind != folder && e.item == "" {
			continue
		}
		if e.bury(); now.find(e.name) != nil {
			e.replace()
		}
		if gone = append(gone, e); e.kind == folder {
			s.carry(join(old.path, e.name), join(now.path, e.name))
		}
	}
	now.entries = append(now.all(), gone...)
	slices.SortFunc(now.entries, inOrder)
}

// carry has the records of a folder that is gone, and of those below, say where it would be now.
func (s vanishing) carry(from, to string) {
	old := s.old[from]
	if old == nil {
		return
	}
	now := *old
	now.path, now.changed = to, true
	now.entries = slices.DeleteFunc(slices.Clone(old.all()), func(e entry) bool { return e.lost })
	now.packed = packed{}
	s.now[to], s.drop = &now, append(s.drop, old)
	s.keep(&now)
	for _, e := range now.entries {
		if e.kind == folder {
			s.carry(join(from, e.name), join(to, e.name))
		}
	}
}

// takeForGone marks as gone what is not anywhere, unless it is too much.
func (s vanishing) takeForGone(lost []vanished) {
	files := 0
	for _, v := range lost {
		files += s.weight(v.in.path, &v.in.all()[v.at])
	}
	if files == 0 {
		return
	}
	asks := !s.o.AcceptGone && float64(files) > s.cat.GonePart*float64(s.old.present(""))
	for _, v := range lost {
		e := &v.in.all()[v.at]
		if asks {
			e.lost = false
			v.in.state, v.in.why = Unconfirmed, "entries are not there; whether they are gone a person says"
			s.report.Unconfirmed += s.weight(v.in.path, e)
			continue
		}
		s.report.Gone += s.weight(v.in.path, e)
		e.bury()
	}
}

// bury marks an entry as gone, which is forgotten where neither it nor what was below it may be an item.
func (e *entry) bury() { e.gone, e.waits, e.lost = true, false, e.item == "" && e.kind != folder }

// weight is how many entries an entry is, with all below it.
func (s vanishing) weight(dir string, e *entry) int {
	if e.kind != folder {
		return 1
	}
	return 1 + s.old.present(join(dir, e.name))
}

// present is how many entries in a folder, and below it, are not gone.
func (t tree) present(path string) int {
	n := t[path]
	if n == nil {
		return 0
	}
	count := n.there()
	if n.hasFolders() {
		n.each(func(e *entry) bool {
			if e.kind == folder && !e.gone {
				count += t.present(join(path, e.name))
			}
			return true
		})
	}
	return count
}
