package files

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"
)

// Algorithm is a check sum algorithm by its name in a manifest's file name.
type Algorithm string

// The algorithms, weakest first.
const (
	MD5    Algorithm = "md5"
	SHA1   Algorithm = "sha1"
	SHA224 Algorithm = "sha224"
	SHA256 Algorithm = "sha256"
	SHA384 Algorithm = "sha384"
	SHA512 Algorithm = "sha512"
)

var algorithms = [...]struct {
	name Algorithm
	size int
	new  func() hash.Hash
}{
	{MD5, md5.Size, md5.New},
	{SHA1, sha1.Size, sha1.New},
	{SHA224, sha256.Size224, sha256.New224},
	{SHA256, sha256.Size, sha256.New},
	{SHA384, sha512.Size384, sha512.New384},
	{SHA512, sha512.Size, sha512.New},
}

func (a Algorithm) index() int {
	for i := range algorithms {
		if algorithms[i].name == a {
			return i
		}
	}
	return -1
}

// Known reports whether a can be computed.
func (a Algorithm) Known() bool { return a.index() >= 0 }

// Plain gives the name as RFC 8493 has it in file names: lower case, letters and digits
// only.
func (a Algorithm) Plain() Algorithm {
	return Algorithm(strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		}
		return -1
	}, string(a)))
}

// Weak reports whether collisions are known, so that a cannot prove who made a
// file, only that it did not change by accident.
func (a Algorithm) Weak() bool { return a == MD5 || a == SHA1 }

// Size is the digest's length in bytes.
func (a Algorithm) Size() int {
	if i := a.index(); i >= 0 {
		return algorithms[i].size
	}
	return 0
}

// New gives the hash of a known algorithm.
func (a Algorithm) New() hash.Hash { return algorithms[a.index()].new() }

// Sums are one file's digests; those that were not asked for are nil.
type Sums [len(algorithms)][]byte

// Of gives a's digest, or nil.
func (s *Sums) Of(a Algorithm) []byte {
	if i := a.index(); i >= 0 {
		return s[i]
	}
	return nil
}

// Set puts a digest; an unknown algorithm is passed over.
func (s *Sums) Set(a Algorithm, sum []byte) {
	if i := a.index(); i >= 0 {
		s[i] = sum
	}
}

// Algorithms are those whose digests are known.
func (s *Sums) Algorithms() (as []Algorithm) {
	for i, sum := range s {
		if sum != nil {
			as = append(as, algorithms[i].name)
		}
	}
	return as
}

// A Set is a set of algorithms, one bit each.
type Set uint8

// SetOf gives the set of the known algorithms among as.
func SetOf(as ...Algorithm) Set {
	var s Set
	for _, a := range as {
		if i := a.index(); i >= 0 {
			s |= 1 << i
		}
	}
	return s
}

func (s Set) each(yield func(i int)) {
	for i := range algorithms {
		if s&(1<<i) != 0 {
			yield(i)
		}
	}
}

func (s Set) count() (n int) {
	s.each(func(int) { n++ })
	return n
}

// Short shows the beginning of a digest.
func Short(b []byte) string { return fmt.Sprintf("%x", b[:min(len(b), 6)]) }

// A Hasher gives the digests of bytes in memory. Used by one goroutine.
type Hasher struct{ hashers [len(algorithms)]hash.Hash }

// NewHasher makes a hasher for the known algorithms among as.
func NewHasher(as ...Algorithm) *Hasher {
	h := &Hasher{}
	SetOf(as...).each(func(i int) { h.hashers[i] = algorithms[i].new() })
	return h
}

// Write takes further bytes; it does not fail.
func (h *Hasher) Write(b []byte) (int, error) {
	for _, one := range h.hashers {
		if one != nil {
			one.Write(b)
		}
	}
	return len(b), nil
}

// Take gives the digests of what was written since the last Take.
func (h *Hasher) Take() *Sums {
	s := &Sums{}
	for i, one := range h.hashers {
		if one != nil {
			s[i] = one.Sum(nil)
			one.Reset()
		}
	}
	return s
}
