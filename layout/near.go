package layout

import "iter"

// Nearest gives the name of those that are there that somebody may have meant by another, which differs
// in every third letter at most; "": none is near.
func Nearest[N ~string](name N, all iter.Seq[N]) (near N) {
	best := len(name)/3 + 1
	for n := range all {
		if d := Distance(string(n), string(name)); d < best || d == best && near != "" && n < near {
			near, best = n, d
		}
	}
	return near
}

// Distance is how many letters must be put in, taken out or changed to make b of a
// (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := above
			if a[i] != b[j] {
				change++
			}
			above = row[j+1]
			row[j+1] = min(change, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
