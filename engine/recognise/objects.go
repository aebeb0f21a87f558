package recognise

import (
	"context"
	"fmt"
	"strings"

	"bagpipe/layout"
)

// Object is one of several that lie side by side in a folder or archive.
type Object struct {
	Name  string   // of the folder that it would be, perhaps with others above it; any bytes
	Files []string // below Objects.Top; sorted. Of a folder that is the object as a whole, its own path
	Whole bool     // it is such a folder
}

// Objects is a folder or archive, parted by the sets of a rule.
type Objects struct {
	Objects []Object
	Left    []string // files that belong to none
	Top     string   // the folder that alone holds everything, with a slash behind it; "": there is none
	Known   bool     // the rule tells objects apart
	Deep    bool     // they were looked for at any depth
}

// TooManyError is why a folder is not parted: some objects would be torn.
type TooManyError struct{ text string }

func (t *TooManyError) Error() string { return t.text }

// Has reports whether there is a rule FILE/RULE.
func (b *Book) Has(rule string) bool { return b.byName[rule] != nil }

// Objects parts a folder or archive by the sets of a rule, FILE/RULE, or searches a folder
// where the rule splits. A set that lacks a file is no object.
func (b *Book) Objects(ctx context.Context, c Candidate, rule string, o Options) (Objects, error) {
	r := b.byName[rule]
	if r == nil || r.Match.Sets == nil && r.Split == "" {
		return Objects{}, nil
	}
	f, err := b.facts(ctx, c, o)
	if err != nil {
		return Objects{}, err
	}
	if r.Split != "" {
		return b.deep(ctx, f, o)
	}
	return f.parted(ctx, r)
}

func (f *facts) parted(ctx context.Context, r *Rule) (Objects, error) {
	l := f.listing(ctx)
	if l.err != nil {
		return Objects{}, fmt.Errorf("list %s: %w", layout.EncodePath(f.c.Name), l.err)
	}
	if l.cut {
		return Objects{}, &TooManyError{fmt.Sprintf("more than %d names inside: which belong together is not told", maxNames)}
	}
	sh, ok := r.Match.Sets.share(ctx, l, f.base())
	if ctx.Err() != nil {
		return Objects{}, ctx.Err()
	}
	if !ok {
		return Objects{}, &TooManyError{fmt.Sprintf("its %d files would have to be compared with one another too often", len(l.files))}
	}
	out, names, owned := Objects{Top: l.top, Known: true}, map[string]bool{}, map[string]bool{}
	for _, p := range sh.parts {
		if p.lacks != "" {
			continue
		}
		o := Object{Name: sh.title(p), Files: p.files}
		if names[strings.ToLower(o.Name)] {
			o.Name = p.mains[0]
		}
		names[strings.ToLower(o.Name)] = true
		for _, name := range p.files {
			owned[name] = true
		}
		out.Objects = append(out.Objects, o)
	}
	for _, name := range l.files {
		if !owned[name] {
			out.Left = append(out.Left, name)
		}
	}
	return out, nil
}
