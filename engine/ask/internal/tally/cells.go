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

// unfit calls do with each row whose number does not fit.
func (c *cells) unfit(fits []bool, do func(row int)) {
	if c.few == nil {
		for i, n := range c.many {
			if !fits[n] {
				do(i)
			}
		}
		return
	}
	var here [1 << 8]bool
	for at, n := range c.names {
		here[at] = fits[n]
	}
	for i, at := range c.few {
		if !here[at] {
			do(i)
		}
	}
}

// add counts the numbers of some rows in sums.
func (c *cells) add(rows []int32, sums []int) {
	if c.few == nil {
		for _, i := range rows {
			sums[c.many[i]]++
		}
		return
	}
	var most [1 << 8]int32
	here := most[:len(c.names)]
	for _, i := range rows {
		here[c.few[i]]++
	}
	for at, n := range c.names {
		sums[n] += int(here[at])
	}
}
