package recognise

import (
	"fmt"
	"slices"
	"strconv"

	"bagpipe/layout"
)

// inSets groups the files inside by the one that names them, and tells whether every
// group is whole. With one group its named groups become variables.
func (f *facts) inSets(s *Sets, v vars) answer {
	l, no1 := f.look()
	if no1 != nil {
		return *no1
	}
	if l.cut {
		return unknown("more than %d names inside", maxNames)
	}
	c := newCompanions(f.ctx, l)
	mains, found := []string(nil), []map[string]string(nil)
	seen := map[string]bool{}
	for _, name := range l.files {
		groups, ok := s.main.match(layout.EncodePath(name))
		if !ok {
			continue
		}
		c.used[name] = true
		in, key := v.with(groups), name
		if s.By != "" {
			key = in.text(s.By)
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		mains, found = append(mains, key), append(found, groups)
		for _, glob := range s.Required {
			if !c.take(in.glob(glob)) && c.left > 0 {
				return no("%s lacks %s", layout.EncodePath(key), short(in.text(glob)))
			}
		}
		for _, glob := range s.Optional {
			c.take(in.glob(glob))
		}
		if c.left <= 0 {
			return unknown("its %d files would have to be compared with one another too often", len(l.files))
		}
	}
	if a := s.bounds(len(mains)); a != nil {
		return *a
	}
	if i := slices.IndexFunc(l.files, func(name string) bool { return !c.used[name] }); s.Alone && i >= 0 {
		return no("%s belongs to none of the sets", layout.EncodePath(l.files[i]))
	}
	v = v.with(map[string]string{"sets": strconv.Itoa(len(mains))})
	if len(mains) == 1 {
		return yes(v.with(found[0]), fmt.Sprintf("one set of %d files: %s", len(c.used), layout.EncodePath(mains[0])))
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
	if n < least {
		a := no("%d sets of files, fewer than %d", n, least)
		return &a
	}
	if s.Max != nil && n > *s.Max {
		a := no("%d sets of files, more than %d", n, *s.Max)
		return &a
	}
	return nil
}
