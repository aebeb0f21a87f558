package desk

import "strings"

// Changed is one line of a difference.
type Changed struct {
	Sign string // - it was, + it is, " " it stayed, … some that stayed are left out
	Text string
}

// Difference compares two texts line by line. Of lines that stayed, those around a change are told.
func Difference(before, after string) (lines []Changed) {
	const most, around = 4000, 2
	a, b := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	if before == "" {
		a = nil
	}
	if after == "" {
		b = nil
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	var all []Changed
	for _, s := range a[:head] {
		all = append(all, Changed{" ", s})
	}
	all = append(all, middle(midA, midB, most)...)
	for _, s := range a[len(a)-tail:] {
		all = append(all, Changed{" ", s})
	}
	left := false
	for i, l := range all {
		near := l.Sign != " "
		for j := max(0, i-around); j <= min(len(all)-1, i+around) && !near; j++ {
			near = all[j].Sign != " "
		}
		if near {
			lines = append(lines, l)
		} else if !left {
			lines = append(lines, Changed{Sign: "…"})
		}
		left = !near
	}
	if len(lines) > most {
		lines = append(lines[:most], Changed{Sign: "…"})
	}
	return lines
}

// middle compares what lies between lines that stayed by their longest common part, where that is
// not too much work.
func middle(a, b []string, most int) (out []Changed) {
	if len(a)*len(b) > most*most/4 {
		for _, s := range a {
			out = append(out, Changed{"-", s})
		}
		for _, s := range b {
			out = append(out, Changed{"+", s})
		}
		return out
	}
	long := make([][]int, len(a)+1) // of the common part behind each two places
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, Changed{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && long[i+1][j] >= long[i][j+1]:
			out = append(out, Changed{"-", a[i]})
			i++
		default:
			out = append(out, Changed{"+", b[j]})
			j++
		}
	}
	return out
}
