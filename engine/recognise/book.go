package recognise

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"bagpipe/bags/archive"
	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// Book is all rule files together, in the order in which they are asked. It does not
// change, and may be used by several goroutines; turn bounds how many archives are
// listed at once.
type Book struct {
	files    []*File
	rules    []*Rule // those of no list, in order
	byName   map[string]*Rule
	keywords []keyword
	drops    List
	inside   List
	turn     chan struct{}
	sieve    *sieve
	words    map[string]bool    // of keywords
	byKind   map[string][]*Rule // of rules; "": of files and archives

	// Broken are the mistakes of one file about another: while there are any, nothing
	// is recognised.
	Broken []error
}

type keyword struct {
	word           string // folded
	files, folders []*Rule
}

// lastFile is asked after all others.
const lastFile = "default"

// NewBook brings files into order: by order, then by name; default.yaml comes last.
func NewBook(files []*File) *Book {
	b := &Book{files: slices.Clone(files), byName: map[string]*Rule{}, turn: make(chan struct{}, listAtOnce), sieve: newSieve(files), words: map[string]bool{}}
	slices.SortStableFunc(b.files, func(x, y *File) int {
		last := func(f *File) int {
			if f.Name == lastFile {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(x), last(y)), cmp.Compare(x.Order, y.Order), strings.Compare(x.Name, y.Name))
	})
	for _, f := range b.files {
		for i := range f.Rules {
			r := &f.Rules[i]
			b.byName[r.ID()] = r
			if !r.Listed {
				b.rules = append(b.rules, r)
			}
		}
		b.drops = b.drops.and(f.Lists.Drops)
		b.inside = b.inside.and(f.Lists.Inside)
	}
	for _, f := range b.files {
		b.addKeywords(f)
	}
	b.byKind = map[string][]*Rule{}
	for _, kind := range []string{KindFolder, KindArchive, KindBag, KindFile, ""} {
		b.byKind[kind] = ofKind(b.rules, kind)
	}
	return b
}

// ofKind gives the rules that may take a candidate of a kind; "" is a file or an archive.
func ofKind(rules []*Rule, kind string) (out []*Rule) {
	for _, r := range rules {
		if r.isFor(kind) || kind == "" && (r.isFor(KindFile) || r.isFor(KindArchive)) {
			out = append(out, r)
		}
	}
	return out
}

func (l List) and(m List) List {
	return List{Allow: append(slices.Clone(l.Allow), m.Allow...), Deny: append(slices.Clone(l.Deny), m.Deny...)}
}

// addKeywords looks up the rules that a file's keywords name.
func (b *Book) addKeywords(f *File) {
	for i, k := range f.Keywords {
		out := keyword{word: fold1(k.Keyword)}
		for _, list := range []struct {
			key  string
			from []string
			to   *[]*Rule
		}{{"files", k.Files, &out.files}, {"folders", k.Folders, &out.folders}} {
			for j, name := range list.from {
				r, err := b.rule(name, f)
				if err != nil {
					b.Broken = append(b.Broken, f.Errorf(fmt.Sprintf("$.keywords[%d].%s[%d]", i, list.key, j), "%v", err))
					continue
				}
				*list.to = append(*list.to, r)
			}
		}
		b.keywords, b.words[out.word] = append(b.keywords, out), true
	}
}

// fold1 makes keywords alike that differ by case or white space alone.
func fold1(word string) string { return strings.ToLower(fold(word)) }

// rule finds a rule by FILE/RULE, or by RULE: of the same file, or the only one of
// that name.
func (b *Book) rule(name string, near *File) (*Rule, error) {
	if r := b.byName[name]; r != nil {
		return r, nil
	}
	if near != nil {
		if r := b.byName[near.Name+"/"+name]; r != nil {
			return r, nil
		}
	}
	var found []string
	for _, f := range b.files {
		if b.byName[f.Name+"/"+name] != nil {
			found = append(found, f.Name+"/"+name)
		}
	}
	switch len(found) {
	case 1:
		return b.byName[found[0]], nil
	case 0:
		return nil, fault.New(fault.NotFound, fmt.Sprintf("no rule %q in rules/", name), fault.Remedy{Verb: fault.ListRules})
	}
	return nil, fmt.Errorf("rule %q stands in several files; write %s", name, strings.Join(found, " or "))
}

// Rules lists all rules in the order in which they are asked; those of no list first.
func (b *Book) Rules() []*Rule {
	all := slices.Clone(b.rules)
	for _, f := range b.files {
		for i := range f.Rules {
			if f.Rules[i].Listed {
				all = append(all, &f.Rules[i])
			}
		}
	}
	return all
}

// Options are what a recognition needs besides rules.
type Options struct {
	Limits archive.Limits // of archives that are listed
	// Particular keeps a folder from being an object by a rule that fits everything, as its
	// folders and files may be objects, and by one that finds what it asks for in folders inside alone.
	Particular bool
	// Within says that the candidate lies in a drop that is split: a rule that splits, tells
	// several objects apart, or fits everything does not take it.
	Within bool

	Ask func(ctx context.Context, a Asked) (Said, error) // asks a rule's program; nil: none is asked

	marks *marks // rule files of the folders that several candidates lie in; nil: they are read
	brief bool   // the verdict, the rule and the workflow are wanted alone
}

// Recognise asks the rules what a candidate is. Its error is about the machine alone,
// or a *layout.FileError of a rule file.
func (b *Book) Recognise(ctx context.Context, c Candidate, o Options) (*Outcome, error) {
	f, err := b.facts(ctx, c, o)
	if err != nil {
		return nil, err
	}
	rules, folderType, err := b.order(c, f.isFolder(), o.marks)
	if err != nil {
		return nil, err
	}
	return f.judge(ctx, rules, folderType, o)
}

// judge asks rules of a candidate, in their order.
func (f *facts) judge(ctx context.Context, rules []*Rule, folderType string, o Options) (*Outcome, error) {
	kind, out := f.kind, &Outcome{Kind: f.kind}
	base := f.base()
	split := f.split(ctx, rules, o, out)
	alone := o.Within || split != nil
	var best *tried
	parted := false // it holds several objects: only what a rule is sure of is one
	for _, r := range rules {
		if r.Split != "" || !r.isFor(kind) {
			continue // files and folders have rules of their own
		}
		if r.Match.everything && r.Program == nil && (best != nil || alone || o.Particular && kind == KindFolder) {
			break // it fits everything; what a rule took for something is better
		}
		if o.brief && f.saysNo(r) {
			continue
		}
		t := f.try(ctx, r, base)
		if o.Particular && t.verdict >= Maybe && r.Verdict != No.String() && !(questions{f}).liesIn(ctx, &r.Match, t.vars) {
			t.answer = no("what it asks for lies in folders inside")
		}
		f.ask(ctx, o, t)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out.tell(r, t)
		if (alone || o.Particular && kind == KindFolder) && len(t.objects) > 0 {
			parted = parted || t.verdict >= Maybe
			continue
		}
		if t.verdict == Yes || t.verdict == Maybe && best == nil && !parted {
			best = t
		}
		if t.verdict == Yes {
			break
		}
	}
	if best != nil && best.verdict == Maybe && (alone || o.Particular) && kind == KindFolder && holdsSets(ctx, f, rules) {
		best = nil
	}
	if best == nil {
		best = split
	}
	if o.brief {
		out.settle(best)
		return out, nil
	}
	return out, f.decide(ctx, out, best, folderType)
}

// facts begins to look at a candidate.
func (b *Book) facts(ctx context.Context, c Candidate, o Options) (*facts, error) {
	f := &facts{c: c, lists: &b.inside, limits: o.Limits, turn: b.turn, sieve: b.sieve}
	if err := f.look(); err != nil {
		return nil, fmt.Errorf("recognise %s: %w", layout.EncodePath(c.Name), err)
	}
	if c.Files != nil {
		f.kind = KindFolder
	}
	return f, nil
}

// tried is what a rule said.
type tried struct {
	answer
	rule    *Rule
	objects []string
	said    Said // by its program
}

// try asks one rule.
func (f *facts) try(ctx context.Context, r *Rule, base vars) *tried {
	f.objects = nil
	a := questions{f}.fits(ctx, &r.Match, base)
	if a.verdict == Yes {
		if more := (questions{f}).fits(ctx, &r.Expect, a.vars); more.verdict != Yes {
			a.verdict, a.why = Maybe, strings.TrimPrefix(a.why+"; but "+more.why, "; ")
			if more.vars != nil {
				a.vars = more.vars
			}
		} else {
			a.why, a.vars = strings.TrimPrefix(strings.Join([]string{a.why, more.why}, "; "), "; "), more.vars
		}
	}
	a.why = strings.TrimSuffix(a.why, "; ")
	if a.verdict == Yes && r.Match.everything {
		a.why = "fits everything"
	}
	if a.verdict == Yes && r.Verdict == "maybe" {
		a.verdict = Maybe
	}
	return &tried{answer: a, rule: r, objects: f.objects}
}

// LeavesOut tells the names inside a drop that do not belong to its content; nil: there are none.
func (b *Book) LeavesOut() func(p string) bool {
	if b == nil || len(b.inside.Deny) == 0 {
		return nil
	}
	return b.inside.denies
}
