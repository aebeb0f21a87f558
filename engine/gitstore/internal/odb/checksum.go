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

// hasChecksum reports whether a file's bytes end with their checksum. mapped is the mapping
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

// Whole reports whether a pack and its index are complete: both end in the checksum of
// their bytes, and belong together.
func Whole(pack, index []byte) bool {
	if len(pack) < packHeaderLen+20 || len(index) < indexHead+indexTrailer {
		return false
	}
	body, sum := pack[:len(pack)-20], Hash(pack[len(pack)-20:])
	if sha1.Sum(body) != sum {
		return false
	}
	if Hash(index[len(index)-indexTrailer:len(index)-20]) != sum {
		return false
	}
	return sha1.Sum(index[:len(index)-20]) == Hash(index[len(index)-20:])
}
