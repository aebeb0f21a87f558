package catalog

import (
	"bagpipe/engine/recognise"
)

// listed is what the walk found in a folder, for recognition to ask.
type listed struct {
	t    tree
	n    *node
	book *recognise.Book
}

// survey recognises by what the walk found.
func survey(s *scan) *recognise.Survey {
	return s.book.Survey(s.cat.Root, s.cat.Collection, recognise.Options{Limits: s.limits, Particular: true}, func(path string) recognise.Listed {
		if n := s.now[path]; n != nil && n.state == Present {
			return listed{s.now, n, s.book}
		}
		return nil
	})
}

func (l listed) Has(name string) bool {
	e := l.n.find(name)
	return e != nil && !e.gone
}

// Endings are found out once a scan: those of the folders below are kept with them.
func (l listed) Endings() recognise.Endings {
	if l.n.ends != nil {
		return *l.n.ends
	}
	var ends recognise.Endings
	for i := range l.n.all() {
		e := &l.n.all()[i]
		switch below := l.below(e); {
		case e.gone:
		case e.kind == folder && below.n == nil:
			ends = recognise.AllEndings()
		default:
			l.book.EndsOf(e.name, &ends)
			if e.kind == folder {
				ends.Join(below.Endings())
			}
		}
	}
	l.n.ends = &ends
	return ends
}

// below is a folder in this one; without a node it is not known.
func (l listed) below(e *entry) listed {
	if e.kind == folder {
		if n := l.t[join(l.n.path, e.name)]; n != nil && n.state == Present {
			return listed{l.t, n, l.book}
		}
	}
	return listed{}
}

func (l listed) Files(visit func(path string, size int64) bool) bool { return l.files("", visit) }

func (l listed) files(prefix string, visit func(path string, size int64) bool) bool {
	for i := range l.n.all() {
		e := &l.n.all()[i]
		switch below := l.below(e); {
		case e.gone:
		case e.kind != folder:
			if !visit(prefix+e.name, e.size) {
				return false
			}
		case below.n == nil || !below.files(prefix+e.name+"/", visit):
			return false
		}
	}
	return true
}
