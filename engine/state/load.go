package state

import (
	"strings"
)

// Numbered splits accession.1 into its definition's name and number.
func Numbered(workflow string) (name, n string) {
	i := strings.LastIndexByte(workflow, '.')
	if i < 0 {
		return workflow, ""
	}
	return workflow[:i], workflow[i+1:]
}
