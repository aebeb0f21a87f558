package recognise

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"bagpipe/layout"
)

// inSets groups the files inside by the one that names them, and reports whether every
// group is whole. With one group its named groups become variables.
func (f questions) inSets(ctx context.Context, s *Sets, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return *no1
	}
	if l.cut {
		return unknown("more than %d names inside", maxNames)
	}
	sh, ok := s.share(ctx, l, v)
	if !ok {
		return unknown("its %d files would have to be compared with one another too often", len(l.files))
	}
	if i := slices.IndexFunc(sh.parts, func(p *part) bool { return p.lacks != "" }); i >= 0 {
		a := no("%s lacks %s", layout.EncodePath(sh.parts[i].key), short(sh.parts[i].lacks))
		a.met = nearlyMet
		return a
	}
	if a := s.bounds(len(sh.parts)); a != nil {
		return *a
	}
	if i := slices.IndexFunc(l.files, func(name string) bool { return !sh.used(name) }); s.Alone && i >= 0 {
		return no("%s belongs to none of the sets", layout.EncodePath(l.files[i]))
	}
	v = v.with(map[string]string{"sets": strconv.Itoa(len(sh.parts))})
	if len(sh.parts) == 1 {
		p := sh.parts[0]
		for name := range sh.common {
			if sh.own[name] == nil && sh.bids[name].of == nil {
				p.files = append(p.files, name)
			}
		}
		return yes(v.with(p.vars), fmt.Sprintf("one set of %d files: %s", len(p.files), layout.EncodePath(p.key)))
	}
	mains := make([]string, len(sh.parts))
	for i, p := range sh.parts {
		mains[i] = p.key
	}
	f.objects = mains
	return yes(v, fmt.Sprintf("%d sets of files, the first is %s", len(mains), firstName(mains)))
}

func firstName(mains []string) string {
	if len(mains) == 0 {
		return "none"
	}
	return layout.EncodePath(mains[0])
}

func (s *Sets) bounds(n int) *answer {
	least := 1
	if s.Min != nil {
		least = *s.Min
	}
	if n == 0 && least > 0 {
		a := no("no file inside is named as the main file of a set is")
		return &a
	}
	if n < least {
		a := no("holds %s; the rule wants at least %d", setsOf(n), least)
		return &a
	}
	if s.Max != nil && n > *s.Max {
		a := no("holds %s; the rule wants at most %d", setsOf(n), *s.Max)
		return &a
	}
	return nil
}

func setsOf(n int) string {
	if n == 1 {
		return "one set of files"
	}
	return strconv.Itoa(n) + " sets of files"
}
