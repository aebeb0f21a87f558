package odb

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Hash names an object: the SHA-1 of its type, size and bytes.
type Hash [20]byte

// String is the 40 hexadecimal digits Git shows.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 40 {
		return h, fmt.Errorf("object name %q: want 40 hexadecimal digits", s)
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("object name %q: %w", s, err)
	}
	return h, nil
}

// Type is an object's type as packs number them.
type Type byte

// The types of objects; 6 and 7 are how a pack marks deltas.
const (
	TypeCommit Type = 1
	TypeTree   Type = 2
	TypeBlob   Type = 3
	TypeTag    Type = 4

	typeOfsDelta Type = 6
	typeRefDelta Type = 7
)

func (t Type) String() string {
	switch t {
	case TypeCommit:
		return "commit"
	case TypeTree:
		return "tree"
	case TypeBlob:
		return "blob"
	case TypeTag:
		return "tag"
	}
	return "type " + strconv.Itoa(int(t))
}

func parseType(s string) (Type, bool) {
	for t := TypeCommit; t <= TypeTag; t++ {
		if t.String() == s {
			return t, true
		}
	}
	return 0, false
}

// hasher names objects without allocating.
type hasher struct {
	h   hash.Hash
	buf [32]byte
	sum [20]byte
}

func newHasher() *hasher { return &hasher{h: sha1.New()} }

func (s *hasher) name(t Type, data []byte) Hash {
	s.h.Reset()
	head := append(s.buf[:0], t.String()...)
	head = append(head, ' ')
	head = strconv.AppendInt(head, int64(len(data)), 10)
	head = append(head, 0)
	s.h.Write(head)
	s.h.Write(data)
	return Hash(s.h.Sum(s.sum[:0]))
}

// Name gives the name an object of this type and these bytes has.
func Name(t Type, data []byte) Hash { return newHasher().name(t, data) }
