package recognise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"bagpipe/layout"
)

// answer is what a condition says, and why, for people. vars are those there are
// once it held.
type answer struct {
	verdict Verdict
	why     string
	vars    vars
	met     int // of a no: how near it came: the conditions that held before, or more
}

// questions are the conditions that can be asked of a candidate.
type questions struct{ *facts }

// condition is one that was given.
type condition func(ctx context.Context, v vars) answer

// nearlyMet is what counts as met by a drop whose main file was found, and by one that all was met by but the
// rule's program: far more than conditions on kinds and names.
const nearlyMet = 100

func no(format string, args ...any) answer {
	return answer{verdict: No, why: fmt.Sprintf(format, args...)}
}

func yes(v vars, why string) answer { return answer{verdict: Yes, why: why, vars: v} }

func unknown(format string, args ...any) answer {
	return answer{verdict: Unknown, why: fmt.Sprintf(format, args...)}
}

// fits answers all conditions of m together: no as soon as one says so, else the
// least that one says.
func (f questions) fits(ctx context.Context, m *Match, v vars) answer {
	least := answer{verdict: Yes, vars: v}
	if m.everything {
		return least
	}
	var held []string
	for i, c := range f.conditions(m) {
		a := c(ctx, least.vars)
		switch {
		case a.verdict == No:
			a.met += i
			return a
		case a.verdict < least.verdict:
			least.verdict, least.why = a.verdict, a.why
		case a.verdict == Yes && a.why != "":
			held = append(held, a.why)
		}
		if a.vars != nil {
			least.vars = a.vars
		}
	}
	if least.verdict == Yes {
		least.why = strings.Join(held, "; ")
	}
	return least
}

// conditions are those of m that are given, what costs least first.
func (f questions) conditions(m *Match) (list []condition) {
	add := func(c condition) { list = append(list, c) }
	if len(m.Collection) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.inCollection(m.Collection, v) })
	}
	if len(m.Kind) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.ofKind(m.Kind, v) })
	}
	if len(m.Name) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.named(m.Name, v) })
	}
	if m.regexp != nil {
		add(func(ctx context.Context, v vars) answer { return f.namedLike(m.regexp, v) })
	}
	if len(m.Extension) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.extension(m.Extension, v) })
	}
	if m.Size != nil {
		add(func(ctx context.Context, v vars) answer { return f.sized(ctx, m.Size, v) })
	}
	if len(m.MIME) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.ofType(m.MIME, v) })
	}
	if len(m.Magic) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.begins(m.Magic, v) })
	}
	if m.Top != "" {
		add(func(ctx context.Context, v vars) answer { return f.inOne(ctx, m.Top, v) })
	}
	if m.find != nil {
		add(func(ctx context.Context, v vars) answer { return f.finds(ctx, m.find, v) })
	}
	if m.Sets != nil {
		add(func(ctx context.Context, v vars) answer { return f.inSets(ctx, m.Sets, v) })
	}
	for _, glob := range m.Holds {
		add(func(ctx context.Context, v vars) answer { return f.holds(ctx, glob, v) })
	}
	for _, glob := range m.Lacks {
		add(func(ctx context.Context, v vars) answer { return f.lacks(ctx, glob, v) })
	}
	for _, glob := range m.May {
		add(func(ctx context.Context, v vars) answer { return f.may(ctx, glob, v) })
	}
	for i := range m.Count {
		add(func(ctx context.Context, v vars) answer { return f.counted(ctx, &m.Count[i], v) })
	}
	for i := range m.XML {
		add(func(ctx context.Context, v vars) answer { return f.inXML(ctx, &m.XML[i], v) })
	}
	for i := range m.JSON {
		add(func(ctx context.Context, v vars) answer { return f.inJSON(ctx, &m.JSON[i], v) })
	}
	for i := range m.All {
		add(func(ctx context.Context, v vars) answer { return f.fits(ctx, &m.All[i], v) })
	}
	if len(m.Any) > 0 {
		add(func(ctx context.Context, v vars) answer { return f.oneOf(ctx, m.Any, v) })
	}
	if m.Not != nil {
		add(func(ctx context.Context, v vars) answer { return f.opposite(ctx, m.Not, v) })
	}
	return list
}

// saysNo reports whether a rule takes a candidate in no case, by what costs little to ask.
func (f *facts) saysNo(r *Rule) bool {
	if f.listed != nil && f.isFolder() {
		for _, wanted := range f.sieve.needs[r] {
			if !f.listed.Endings().meets(wanted) {
				return true
			}
		}
	}
	return questions{f}.deny(&r.Match)
}

// deny reports whether one of the conditions does not hold, without a reason for people. Of a file
// whose kind is not known yet ("") the kind and the content are not asked.
func (f questions) deny(m *Match) bool {
	switch {
	case len(m.Kind) > 0 && f.kind != "" && !slices.Contains(m.Kind, f.kind),
		len(m.Collection) > 0 && !slices.Contains(m.Collection, string(f.c.Collection)),
		len(m.Extension) > 0 && f.ending(m.Extension) == "",
		len(m.Name) > 0 && f.like(m.Name) == "",
		f.isFolder() && len(m.MIME)+len(m.Magic) > 0,
		f.kind == KindFile && m.asksInside():
		return true
	}
	if m.regexp != nil && !m.regexp.re().MatchString(layout.EncodePath(f.c.Name)) {
		return true
	}
	if len(m.MIME) > 0 && f.kind != "" {
		if types, err := f.mime(); err == nil && !mimeFits(m.MIME, types) {
			return true
		}
	}
	for i := range m.All {
		if f.deny(&m.All[i]) {
			return true
		}
	}
	for i := range m.Any {
		if !f.deny(&m.Any[i]) {
			return false
		}
	}
	return len(m.Any) > 0
}

// asksInside reports whether a file, which has nothing inside, does not fit.
func (m *Match) asksInside() bool {
	if m.Top != "" || m.find != nil || m.Sets != nil || len(m.Holds)+len(m.Count) > 0 {
		return true
	}
	named := func(d InDocument) bool { return d.File != "" }
	return slices.ContainsFunc(m.XML, named) || slices.ContainsFunc(m.JSON, named)
}

// asksContent reports whether the answer of conditions may differ between a file and an archive of the
// same name and size, or with the bytes of the file.
func (m *Match) asksContent() bool {
	if len(m.MIME)+len(m.Magic)+len(m.XML)+len(m.JSON)+len(m.Lacks)+len(m.May) > 0 || m.asksInside() {
		return true
	}
	if len(m.Kind) > 0 && slices.Contains(m.Kind, KindFile) != slices.Contains(m.Kind, KindArchive) {
		return true
	}
	one := func(m Match) bool { return m.asksContent() }
	return slices.ContainsFunc(m.All, one) || slices.ContainsFunc(m.Any, one) || m.Not != nil && m.Not.asksContent()
}

// isNamed reports whether names are all that the conditions ask, so that what deny does not deny holds.
func (m *Match) isNamed() bool {
	return m.Size == nil && len(m.All)+len(m.Any) == 0 && m.Not == nil && !m.asksContent()
}

func (f questions) inCollection(wanted Texts, v vars) answer {
	if slices.Contains(wanted, string(f.c.Collection)) {
		return yes(v, "collection "+string(f.c.Collection))
	}
	return no("collection %s, not %s", f.c.Collection, strings.Join(wanted, " or "))
}

func (f questions) ofKind(wanted Texts, v vars) answer {
	if slices.Contains(wanted, f.kind) {
		return yes(v, f.kind)
	}
	return no("%s, not %s", withArticle(f.kind), strings.Join(wanted, " or "))
}

func withArticle(kind string) string {
	if kind == KindArchive {
		return "an " + kind
	}
	return "a " + kind
}

func (f questions) named(globs Texts, v vars) answer {
	if glob := f.like(globs); glob != "" {
		return yes(v, "name like "+glob)
	}
	return no("name not like %s", strings.Join(globs, " or "))
}

// like gives the first pattern that the name fits; "": none.
func (f questions) like(globs Texts) string {
	for _, glob := range globs {
		if layout.MatchPattern(glob, f.c.Name) {
			return glob
		}
	}
	return ""
}

func (f questions) namedLike(p *pattern, v vars) answer {
	groups, ok := p.match(layout.EncodePath(f.c.Name))
	if !ok {
		return answer{verdict: No, why: "another name", met: -1} // nothing was looked for in it
	}
	return yes(v.with(groups), "its name")
}

// short is the beginning of an expression: enough to know it by.
func short(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func (f questions) extension(wanted Texts, v vars) answer {
	if ext := f.ending(wanted); ext != "" {
		return yes(v, "extension "+ext[1:])
	}
	return no("extension not %s", strings.Join(wanted, " or "))
}

// ending gives the first extension that the name has, with its dot; "": none.
func (f questions) ending(wanted Texts) string {
	name := strings.ToLower(f.c.Name)
	for _, e := range wanted {
		if ext := "." + strings.ToLower(strings.TrimPrefix(e, ".")); strings.HasSuffix(name, ext) && len(name) > len(ext) {
			return ext
		}
	}
	return ""
}

func (f questions) sized(ctx context.Context, r *Range, v vars) answer {
	size := f.size
	if !f.isFolder() {
		return r.says(size, v)
	}
	l := f.listing(ctx)
	if l.err != nil {
		return unlisted(l)
	}
	if size = l.bytes; l.cut && (r.Max > 0 || size < int64(r.Min)) {
		return unknown("more than %d files: its size is not known", maxNames)
	}
	return r.says(size, v)
}

func (r *Range) says(size int64, v vars) answer {
	switch {
	case size < int64(r.Min):
		return no("%d bytes, less than %d", size, r.Min)
	case r.Max > 0 && size > int64(r.Max):
		return no("%d bytes, more than %d", size, r.Max)
	}
	return yes(v, fmt.Sprintf("%d bytes", size))
}

func (f questions) ofType(wanted Texts, v vars) answer {
	if f.isFolder() {
		return no("a folder has no MIME type")
	}
	types, err := f.mime()
	if err != nil {
		return unreadable(f.c.Name, err)
	}
	if mimeFits(wanted, types) {
		return yes(v, types[0])
	}
	return no("%s, not %s", types[0], strings.Join(wanted, " or "))
}

func (f questions) begins(wanted []Magic, v vars) answer {
	if f.isFolder() {
		return no("a folder has no bytes")
	}
	for i := range wanted {
		m := &wanted[i]
		ok, err := f.hasBytes(m)
		if err != nil {
			return unreadable(f.c.Name, err)
		}
		if ok {
			return yes(v, fmt.Sprintf("its bytes at %d", m.At))
		}
	}
	return no("its bytes are others")
}

func (f questions) hasBytes(m *Magic) (bool, error) {
	if end := m.At + int64(len(m.bytes)); f.first != nil && (end <= int64(len(f.first)) || len(f.first) < mimeHead) {
		return end <= int64(len(f.first)) && string(f.first[m.At:end]) == string(m.bytes), nil
	}
	r, err := f.open("")
	if err != nil {
		return false, err
	}
	defer r.Close()
	got := make([]byte, len(m.bytes))
	n, _ := r.ReadAt(got, m.At) // shorter files do not have them
	return string(got[:n]) == string(m.bytes), nil
}

func (f questions) oneOf(ctx context.Context, list []Match, v vars) answer {
	best := answer{verdict: No}
	var whys []string
	for i := range list {
		a := f.fits(ctx, &list[i], v)
		if a.verdict == Yes {
			return a
		}
		if a.verdict > best.verdict {
			best = a
		}
		best.met = max(best.met, a.met)
		whys = append(whys, a.why)
	}
	if best.verdict == No {
		best.why = "none of: " + strings.Join(whys, "; ")
	}
	return best
}

func (f questions) opposite(ctx context.Context, m *Match, v vars) answer {
	a := f.fits(ctx, m, v)
	if a.verdict = a.verdict.not(); a.verdict == No {
		a.why = "what must not be: " + a.why
	} else if a.verdict == Yes {
		a.why = "not: " + a.why
	}
	a.vars = nil
	return a
}

// unreadable is what to say where a file could not be read: that is no reason to
// keep the drop out.
func unreadable(name string, err error) answer {
	return unknown("%s cannot be read: %v", layout.EncodePath(name), cause(err))
}

// cause leaves the path out of an error of the file system: it is of this machine.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func unlisted(l *listing) answer { return unknown("cannot be listed: %v", cause(l.err)) }
