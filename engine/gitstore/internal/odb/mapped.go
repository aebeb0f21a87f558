package odb

import (
	"crypto/sha1"
	"slices"

	"golang.org/x/sys/unix"
)

// giveBack gives back the pages of a mapping that were read: they count as the process'
// memory. nil: nothing is mapped.
func giveBack(mapped []byte) {
	if mapped != nil {
		unix.Madvise(mapped, unix.MADV_DONTNEED) //nolint:errcheck // only advice
	}
}

// hasChecksum tells whether a file's bytes end with their checksum. mapped is the mapping
// they lie in, if any.
func hasChecksum(data, mapped []byte) bool {
	body := len(data) - len(Hash{})
	sum := sha1.New()
	for part := range slices.Chunk(data[:body], 1<<20) {
		sum.Write(part)
		giveBack(mapped)
	}
	return Hash(sum.Sum(nil)) == Hash(data[body:])
}
