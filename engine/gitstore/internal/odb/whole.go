package odb

import (
	"crypto/sha1"
)

// Whole tells whether a pack and its index are complete: both end in the
// checksum of what stands before, and belong together.
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
