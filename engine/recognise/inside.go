package recognise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"bagpipe/layout"
)

// What is asked of the names inside. A file has none: it says no; what cannot be
// listed is unknown.

// look gives the listing, or what to say without one.
func (f questions) look(ctx context.Context) (*listing, *answer) {
	if f.kind == KindFile {
		a := no("a file has nothing inside")
		return nil, &a
	}
	l := f.listing(ctx)
	if l.err != nil {
		a := unlisted(l)
		return nil, &a
	}
	return l, nil
}

func (f questions) inOne(ctx context.Context, wanted string, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return *no1
	}
	top := l.topName()
	v = v.with(map[string]string{"top": top})
	switch {
	case top == "" && l.cut:
		return unknown("more than %d names inside", maxNames)
	case top == "":
		return no("holds no one folder that everything is in")
	case inside(v.glob(wanted), top):
		return yes(v, "everything in the folder "+top)
	}
	return no("everything in the folder %s, not %s", top, v.text(wanted))
}

// finds takes the groups of the first name that fits.
func (f questions) finds(ctx context.Context, p *pattern, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return *no1
	}
	for _, name := range l.files {
		if groups, ok := p.match(layout.EncodePath(name)); ok {
			return yes(v.with(groups), "holds "+layout.EncodePath(name))
		}
	}
	return l.absent("holds nothing like " + short(p.re().String()))
}

func (f questions) holds(ctx context.Context, glob string, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return *no1
	}
	if name, ok := l.find(v.glob(glob)); ok {
		return yes(v, "holds "+layout.EncodePath(name))
	}
	return l.absent("lacks " + short(v.text(glob)))
}

func (f questions) lacks(ctx context.Context, glob string, v vars) answer {
	l, no1 := f.look(ctx)
	switch {
	case no1 != nil && no1.verdict == No:
		return yes(v, "")
	case no1 != nil:
		return *no1
	}
	if name, ok := l.find(v.glob(glob)); ok {
		return no("holds %s", layout.EncodePath(name))
	}
	a := l.absent("lacks " + short(v.text(glob)))
	a.verdict, a.vars = a.verdict.not(), v
	return a
}

// may tells of a companion that need not be there.
func (f questions) may(ctx context.Context, glob string, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return yes(v, "")
	}
	if name, ok := l.find(v.glob(glob)); ok {
		return yes(v, "also "+layout.EncodePath(name))
	}
	return yes(v, "")
}

func (f questions) counted(ctx context.Context, c *Count, v vars) answer {
	l, no1 := f.look(ctx)
	if no1 != nil {
		return *no1
	}
	n, heads := 0, 0
	for _, name := range l.files {
		if c.Name != "" && !inside(v.glob(c.Name), name) {
			continue
		}
		if c.regexp != nil && !c.regexp.re().MatchString(layout.EncodePath(name)) {
			continue
		}
		if len(c.MIME) > 0 {
			if heads++; heads > maxHeads {
				return unknown("more than %d files to look into for their MIME types", maxHeads)
			}
			ok, a := f.typeInside(l.onDisk(name), c.MIME)
			if a != nil {
				return *a
			}
			if !ok {
				continue
			}
		}
		n++
	}
	return c.says(n, l.cut, v)
}

func (f questions) typeInside(rel string, wanted Texts) (bool, *answer) {
	if f.kind == KindArchive {
		a := unknown("MIME types within an archive are not known before it is unpacked")
		return false, &a
	}
	data, err := f.head(rel, mimeHead)
	if err != nil {
		a := unreadable(rel, err)
		return false, &a
	}
	return mimeFits(wanted, mimesOf(data)), nil
}

// what names what is counted.
func (c *Count) what() string {
	var parts []string
	for _, p := range []string{c.Name, short(c.Regexp), strings.Join(c.MIME, " or ")} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

func (c *Count) says(n int, cut bool, v vars) answer {
	of := fmt.Sprintf("%d of %s", n, c.what())
	switch {
	case c.Max != nil && n > *c.Max:
		return no("holds %s, more than %d", of, *c.Max)
	case c.Min != nil && n < *c.Min && !cut:
		return no("holds %s, fewer than %d", of, *c.Min)
	case cut && (c.Max != nil || c.Min != nil && n < *c.Min):
		return unknown("more than %d names inside", maxNames)
	}
	return yes(v, "holds "+of)
}

// inXML and inJSON ask for a value in a document.
func (f questions) inXML(ctx context.Context, d *InDocument, v vars) answer {
	return f.inDocument(ctx, d, v, func(rel string) (string, bool, error) { return f.xmlValue(rel, d.xpath) })
}

func (f questions) inJSON(ctx context.Context, d *InDocument, v vars) answer {
	return f.inDocument(ctx, d, v, func(rel string) (string, bool, error) { return f.jsonValue(rel, d.Path) })
}

func (f questions) inDocument(ctx context.Context, d *InDocument, v vars, value func(rel string) (string, bool, error)) answer {
	rel, missing := f.sideCar(ctx, d.File, v)
	if missing != nil {
		return *missing
	}
	name := layout.EncodePath(rel)
	if rel == "" {
		name = layout.EncodePath(f.c.Name)
	}
	text, ok, err := value(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return no("lacks %s", name)
	case err != nil:
		return unknown("%s %v", name, cause(err))
	case !ok:
		return no("%s has no %s", name, short(d.Path))
	case len(d.Is) > 0 && !slices.Contains(d.Is, text):
		return no("%s in %s is %s, not %s", short(d.Path), name, short(text), strings.Join(d.Is, " or "))
	}
	if d.matches != nil {
		groups, ok := d.matches.match(text)
		if !ok {
			return no("%s in %s is %s, not like %s", short(d.Path), name, short(text), short(d.Matches))
		}
		v = v.with(groups)
	}
	return yes(v, fmt.Sprintf("%s in %s is %s", short(d.Path), name, short(text)))
}

// sideCar finds the file that a pattern names, as a path on disk below the drop.
func (f questions) sideCar(ctx context.Context, glob string, v vars) (rel string, missing *answer) {
	if glob == "" {
		return "", nil
	}
	l, no1 := f.look(ctx)
	if no1 != nil {
		return "", no1
	}
	name, ok := l.find(v.glob(glob))
	if !ok {
		a := l.absent("lacks " + short(v.text(glob)))
		return "", &a
	}
	return l.onDisk(name), nil
}

// trait is what a rule asks of one name at least in a folder.
type trait struct {
	fits func(name string) bool
	mime Texts // of that file, too
	main bool  // it names sets, which no folder on the way is asked for by
}

// traits gives those of the conditions that held; bound: they ask for the folder itself, or for all in it.
func (m *Match) traits(ctx context.Context, f questions, v vars) (all []trait, bound bool) {
	like := func(p *pattern) func(string) bool {
		return func(name string) bool { return p.re().MatchString(layout.EncodePath(name)) }
	}
	named := func(glob string) func(string) bool {
		glob = v.glob(glob)
		return func(name string) bool { return inside(glob, name) }
	}
	bound = len(m.Name) > 0 || m.regexp != nil || m.Top != "" || m.Sets != nil && m.Sets.Alone
	if m.find != nil {
		all = append(all, trait{fits: like(m.find)})
	}
	if m.Sets != nil {
		all = append(all, trait{fits: like(m.Sets.main), main: true})
	}
	for _, glob := range m.Holds {
		all = append(all, trait{fits: named(glob)})
	}
	for _, c := range m.Count {
		if c.Min == nil || *c.Min < 1 {
			continue
		}
		t := trait{fits: named(cmp.Or(c.Name, "**/*")), mime: c.MIME}
		if by := t.fits; c.regexp != nil {
			t.fits = func(name string) bool { return by(name) && like(c.regexp)(name) }
		}
		all = append(all, t)
	}
	for _, d := range slices.Concat(m.XML, m.JSON) {
		all = append(all, trait{fits: named(d.File)})
	}
	parts := slices.Clone(m.All)
	if i := slices.IndexFunc(m.Any, func(one Match) bool { return f.fits(ctx, &one, v).verdict > No }); i >= 0 {
		parts = append(parts, m.Any[i])
	}
	for i := range parts {
		more, is := parts[i].traits(ctx, f, v)
		all, bound = append(all, more...), bound || is
	}
	return all, bound
}

// liesIn reports whether what conditions found inside a folder is the folder's own: something of it lies directly
// there, or where a condition names the way, and all of it outside the folders inside that have all of it, too.
func (f questions) liesIn(ctx context.Context, m *Match, v vars) bool {
	if f.kind != KindFolder { // a bag holds its content in folders
		return true
	}
	traits, bound := m.traits(ctx, f, v)
	if bound || len(traits) == 0 {
		return true
	}
	l := f.listing(ctx)
	places, met, own := make([]map[string]bool, len(traits)), map[string]int{}, false
	for i, t := range traits {
		places[i] = map[string]bool{}
		for _, p := range l.files {
			in, rest, deep := strings.Cut(p, "/")
			if deep && places[i][in] || !t.fits(p) {
				continue
			}
			if len(t.mime) > 0 {
				if is, _ := f.typeInside(l.onDisk(p), t.mime); !is {
					continue
				}
			}
			if !deep || !t.main && !t.fits(rest) {
				in, own = "", true
			}
			if !places[i][in] {
				places[i][in] = true
				met[in]++
			}
		}
	}
	return own && !slices.ContainsFunc(places, func(in map[string]bool) bool {
		for place := range in {
			if place == "" || met[place] < len(traits) {
				return false
			}
		}
		return true
	})
}
