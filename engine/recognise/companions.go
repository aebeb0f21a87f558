package recognise

import (
	"context"
	"slices"
	"strings"

	"bagpipe/layout"
)

// The rules are: there may be thousands of sets in a folder, and as many patterns as
// each of them has. A pattern without signs is looked up; one with is compared with
// the names that begin like it, or with all, once; and all that takes no more than
// so many comparisons.

const maxCompared = 20_000_000 // names with patterns, some seconds

// companions finds the files that belong to sets.
type companions struct {
	l     *listing
	there map[string][]string // as named, by the name in lower case
	asked map[string][]string // patterns, and what fitted them
	left  int                 // comparisons; none: what was said since does not count
}

func newCompanions(l *listing) *companions {
	c := &companions{l: l, there: make(map[string][]string, len(l.files)),
		asked: map[string][]string{}, left: maxCompared}
	for _, name := range l.files {
		low := strings.ToLower(name)
		c.there[low] = append(c.there[low], name)
	}
	return c
}

// find gives the names that fit one pattern, in lower case.
func (c *companions) find(ctx context.Context, glob string) []string {
	found, again := c.asked[glob]
	if !again {
		found = c.findNew(ctx, glob)
		c.asked[glob] = found
	}
	return found
}

// anyDepth begins patterns that fit at any depth.
const anyDepth = "**/"

func (c *companions) findNew(ctx context.Context, glob string) []string {
	head, whole := literalHead(glob)
	if whole {
		return c.there[head]
	}
	if rest, deep := strings.CutPrefix(glob, anyDepth); deep && !strings.Contains(rest, "/") {
		head, _ = literalHead(rest)
		return c.compare(ctx, glob, head, &c.l.based, lowerBase)
	}
	if strings.HasPrefix(glob, anyDepth) {
		head = ""
	}
	return c.compare(ctx, glob, head, &c.l.folded, strings.ToLower)
}

// compare asks the names that begin with head, by their key.
func (c *companions) compare(ctx context.Context, glob, head string, sorted *[]keyed, key func(string) string) (found []string) {
	if *sorted == nil {
		*sorted = c.l.sortedBy(key)
	}
	i, _ := slices.BinarySearchFunc(*sorted, head, func(k keyed, head string) int { return strings.Compare(k.key, head) })
	for _, k := range (*sorted)[i:] {
		if !strings.HasPrefix(k.key, head) {
			break
		}
		if c.left--; c.left <= 0 || c.left%4096 == 0 && ctx.Err() != nil {
			c.left = 0
			return nil
		}
		if layout.MatchPattern(glob, k.low) {
			found = append(found, k.name)
		}
	}
	return found
}

// keyed is a name, in lower case as well, and what it is sorted by.
type keyed struct{ key, low, name string }

func (l *listing) sortedBy(key func(string) string) []keyed {
	sorted := make([]keyed, len(l.files))
	for i, name := range l.files {
		sorted[i] = keyed{key(name), strings.ToLower(name), name}
	}
	slices.SortFunc(sorted, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	return sorted
}

func lowerBase(name string) string { return strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]) }

// literalHead gives what everything that fits a pattern begins with; whole: it is all
// of it.
func literalHead(glob string) (head string, whole bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?', '[', '{':
			return b.String(), false
		case '\\':
			if i++; i == len(glob) {
				return b.String(), false
			}
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
}
