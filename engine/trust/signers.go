package trust

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Signers are keys that count, and whose they are.
type Signers struct{ of map[string]string }

// ParseSigners reads a list; lines that cannot be read list nobody.
func ParseSigners(data []byte) Signers {
	s := Signers{map[string]string{}}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		at := slices.IndexFunc(fields, func(f string) bool {
			return strings.HasPrefix(f, "ssh-") || strings.HasPrefix(f, "ecdsa-") || strings.HasPrefix(f, "sk-")
		})
		if at < 1 || at+1 >= len(fields) || !forCommits(strings.Join(fields[1:at], " ")) {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(fields[at+1])
		if err != nil {
			continue
		}
		if key, err := ssh.ParsePublicKey(raw); err == nil {
			s.of[string(key.Marshal())] = strings.Trim(fields[0], `"`)
		}
	}
	return s
}

// forCommits reports whether the options of a line let its key sign commits.
func forCommits(options string) bool {
	lower := strings.ToLower(options)
	if strings.Contains(lower, "cert-authority") {
		return false
	}
	_, names, limited := strings.Cut(lower, `namespaces="`)
	names, _, _ = strings.Cut(names, `"`)
	return !limited || slices.Contains(strings.Split(names, ","), namespace)
}

// None reports whether the list lists nobody.
func (s Signers) None() bool { return len(s.of) == 0 }

// Lists reports whether a key counts.
func (s Signers) Lists(k *Key) bool {
	_, listed := s.of[string(k.public.Marshal())]
	return listed
}

// ErrUnsigned is a commit without a signature.
var ErrUnsigned = errors.New("it is not signed")

// Vouch says who of those listed signed a commit; payload is the commit without the signature.
func (s Signers) Vouch(payload []byte, armored string) (who, fingerprint string, err error) {
	if armored == "" {
		return "", "", ErrUnsigned
	}
	key, err := Verify(payload, armored)
	if err != nil {
		return "", "", err
	}
	fingerprint = ssh.FingerprintSHA256(key)
	who, listed := s.of[string(key.Marshal())]
	if !listed {
		return "", fingerprint, fmt.Errorf("it is signed by a key that was not listed then: %s", fingerprint)
	}
	return who, fingerprint, nil
}
