package layout

import "fmt"

// Count words a number of things: 1 file, 2 files.
func Count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
