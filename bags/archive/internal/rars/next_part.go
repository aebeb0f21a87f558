package rars

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// nextPart gives the name of the part after name: x.part1.rar, x.part2.rar, or, before
// RAR 3, x.rar, x.r00 … x.r99, x.s00.
func nextPart(name string, old bool) (string, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if old {
		if len(ext) == 4 && ext[2] >= '0' && ext[2] <= '9' && ext[3] >= '0' && ext[3] <= '9' {
			n, _ := strconv.Atoi(ext[2:]) // two digits
			if n < 99 {
				return fmt.Sprintf("%s%s%02d", stem, ext[:2], n+1), nil
			}
			return fmt.Sprintf("%s.%c00", stem, ext[1]+1), nil
		}
		return stem + ".r00", nil
	}
	end := len(stem)
	for end > 0 && (stem[end-1] < '0' || stem[end-1] > '9') {
		end--
	}
	begin := end
	for begin > 0 && stem[begin-1] >= '0' && stem[begin-1] <= '9' {
		begin--
	}
	n, err := strconv.Atoi(stem[begin:end])
	if err != nil {
		return "", fmt.Errorf("%q has no number that its next part could be found by", name)
	}
	return fmt.Sprintf("%s%0*d%s%s", stem[:begin], end-begin, n+1, stem[end:], ext), nil
}
