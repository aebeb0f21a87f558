package packed

import (
	"cmp"
	"strings"
)

// CompareAge orders items as they are listed: the oldest first; children that were
// made in the same instant by their names, a number in which counts as one.
func CompareAge(a, b *Item) int {
	c := a.Created.Compare(b.Created)
	if c == 0 && a.Parent != nil && b.Parent != nil {
		c = cmp.Or(cmp.Compare(a.Parent.Item, b.Parent.Item), compareNames(a.Parent.Name, b.Parent.Name))
	}
	return cmp.Or(c, cmp.Compare(kinRank(a), kinRank(b)), cmp.Compare(a.ID, b.ID))
}

// kinRank has items that are no children first, so that the order is one of all items.
func kinRank(it *Item) int {
	if it.Parent != nil {
		return 1
	}
	return 0
}

// compareNames has page-9 before page-10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(x, y)); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a text begins with.
func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
