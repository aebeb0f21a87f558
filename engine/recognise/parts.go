package recognise

import (
	"context"
	"path"
	"slices"
	"strings"

	"bagpipe/layout"
)

// The rules are: a file belongs to one set. One that fits main belongs to its own; any
// other to the one whose pattern fits it most closely, which is the one with the longest
// beginning that is no sign: of map.* and map_2.* the second has map_2.prj. Where a file
// that is required is as near to two sets (map.tfw to map.tif and map.png), they are one.
// A pattern that names no group of main, as readme*, is about all sets: what fits it is
// of none.

// part is one set while the files are shared out.
type part struct {
	key   string // by, or the first main
	mains []string
	vars  vars
	files []string // all that are its own, once shared out
	lacks string   // the first required pattern without a file; "": it is whole
	into  *part    // that it is one with; nil: it stands for itself
}

func (p *part) root() *part {
	for p.into != nil {
		p = p.into
	}
	return p
}

// bid is what a file is nearest to so far.
type bid struct {
	of       *part
	near     int
	required bool
}

// sharing shares files out among sets.
type sharing struct {
	s      *Sets
	c      *companions
	parts  []*part
	own    map[string]*part // mains
	bids   map[string]bid
	common map[string]bool // what fits a pattern about all sets
}

// share finds the sets among files, in the order of their first mains. ok is false when
// that would take too many comparisons.
func (s *Sets) share(ctx context.Context, l *listing, v vars) (sh *sharing, ok bool) {
	sh = &sharing{s: s, c: newCompanions(l), own: map[string]*part{}, bids: map[string]bid{}, common: map[string]bool{}}
	byKey := map[string]*part{}
	for _, name := range l.files {
		groups, ok := s.main.match(layout.EncodePath(name))
		if !ok {
			continue
		}
		in, key := v.with(groups), name
		if s.By != "" {
			key = in.text(s.By)
		}
		p := byKey[key]
		if p == nil {
			p = &part{key: key, vars: in}
			byKey[key], sh.parts = p, append(sh.parts, p)
		}
		p.mains = append(p.mains, name)
		sh.own[name] = p
	}
	for _, p := range sh.parts {
		sh.bidFor(ctx, p)
		if sh.c.left <= 0 {
			return nil, false
		}
	}
	sh.settle(l.files)
	return sh, true
}

// bidFor bids for what a set's patterns fit.
func (sh *sharing) bidFor(ctx context.Context, p *part) {
	for i, glob := range slices.Concat(sh.s.Required, sh.s.Optional) {
		required, own := i < len(sh.s.Required), sh.s.names(glob)
		found := false
		for one := range strings.SplitSeq(strings.ToLower(p.vars.glob(glob)), "|") {
			head, whole := literalHead(strings.TrimPrefix(one, anyDepth))
			near := 2 * len(head)
			if whole {
				near++
			}
			for _, name := range sh.c.find(ctx, one) {
				found = true
				switch {
				case !own:
					sh.common[name] = true
				case sh.own[name] == nil:
					sh.bid(name, bid{p, near, required})
				}
			}
		}
		if required && !found && p.lacks == "" {
			p.lacks = p.vars.text(glob)
		}
	}
}

func (sh *sharing) bid(name string, b bid) {
	was, ok := sh.bids[name]
	switch {
	case !ok || b.near > was.near || b.near == was.near && b.required && !was.required:
		sh.bids[name] = b
	case b.near == was.near && b.required && was.required && b.of.root() != was.of.root():
		b.of.root().into = was.of.root()
	}
}

// names reports whether a pattern is about one set: whether it uses a group of main.
func (s *Sets) names(glob string) bool {
	used, _ := variablesOf(glob) // the pattern was checked
	return slices.ContainsFunc(used, func(name string) bool { return slices.Contains(s.main.groups, name) })
}

// settle gives every file to its set, and joins the sets that are one.
func (sh *sharing) settle(files []string) {
	for _, name := range files {
		p := sh.own[name]
		if p == nil {
			p = sh.bids[name].of
		}
		if p != nil {
			p = p.root()
			p.files = append(p.files, name)
		}
	}
	for _, p := range sh.parts {
		if r := p.root(); r != p && r.lacks == "" {
			r.lacks = p.lacks
		}
	}
	sh.parts = slices.DeleteFunc(sh.parts, func(p *part) bool { return p.into != nil })
}

// used reports whether a file belongs to a set, or to all of them.
func (sh *sharing) used(name string) bool {
	return sh.own[name] != nil || sh.bids[name].of != nil || sh.common[name]
}

// title is what a folder that holds the set alone would be called: what the set goes by,
// or its first main without extension; any bytes, and perhaps folders before it.
func (sh *sharing) title(p *part) string {
	if sh.s.By != "" {
		if name, err := layout.DecodePath(p.key); err == nil && folderName(name) {
			return name
		}
	}
	main := p.mains[0]
	if name := strings.TrimSuffix(main, path.Ext(main)); folderName(path.Base(name)) && !strings.HasSuffix(name, "/") {
		return name
	}
	return main
}

// folderName reports whether a folder may be called so and is not hidden.
func folderName(name string) bool {
	return name != "" && name[0] != '.' && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}
