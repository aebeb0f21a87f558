package tally

import "slices"

// cells are the numbers of the rows of a page in one column. A page has few rows, and seldom more than 256 sets in a
// column: then a row takes one byte, and not four. Of a million items in twelve columns that is 40 MB less.
type cells struct {
	few   []uint8  // of each row the place of its number in names; nil: see many
	names []uint32 // in the order in which rows have them first
	many  []uint32 // of each row its number
}

// cellsOf keeps the numbers of rows.
func cellsOf(numbers []uint32) cells {
	const most = 1 << 8
	c := cells{few: make([]uint8, len(numbers))}
	for i, n := range numbers {
		at := slices.Index(c.names, n)
		if at < 0 {
			if at = len(c.names); at == most {
				return cells{many: slices.Clone(numbers)}
			}
			c.names = append(c.names, n)
		}
		c.few[i] = uint8(at)
	}
	c.names = slices.Clip(c.names)
	return c
}

// at is the number of a row.
func (c *cells) at(i int) uint32 {
	if c.few != nil {
		return c.names[c.few[i]]
	}
	return c.many[i]
}

// room is what cells need while they are looked at, of each name of a page. Made once for all pages, it is
// not cleared for each: with few rows a page that took longer than the rows.
type room struct {
	fits [1 << 8]bool
	sums [1 << 8]int32
}

// sift sets, of each row whose number does not fit, where it falls: to k where the column is chosen and
// the row was let through before, else out.
func (c *cells) sift(r *room, fits []bool, chosen bool, k int16, buts []int16) {
	if c.few == nil {
		for i, n := range c.many {
			if !fits[n] {
				buts[i] = without(buts[i], k, chosen)
			}
		}
		return
	}
	for at, n := range c.names {
		r.fits[at] = fits[n]
	}
	for i, at := range c.few {
		if !r.fits[at] {
			buts[i] = without(buts[i], k, chosen)
		}
	}
}

// add counts the numbers of some rows in sums.
func (c *cells) add(r *room, rows []int32, sums []int) {
	switch {
	case c.few == nil:
		for _, i := range rows {
			sums[c.many[i]]++
		}
	case len(rows) < len(c.names):
		for _, i := range rows {
			sums[c.names[c.few[i]]]++
		}
	default:
		here := r.sums[:len(c.names)]
		clear(here)
		for _, i := range rows {
			here[c.few[i]]++
		}
		for at, n := range c.names {
			sums[n] += int(here[at])
		}
	}
}
