package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"maps"
	"strings"
	"time"

	"bagpipe/engine/fault"
)

// tokenStart begins every token, so that one that leaked is known for what it is.
const tokenStart = "bagpipe_"

// AddToken adds a program's account, and gives its token: ID.SECRET, which is kept nowhere.
func (b *Book) AddToken(random io.Reader, t Token) (id, token string, err error) {
	if err := checkName("token", t.Name); err != nil {
		return "", "", err
	}
	drawn := make([]byte, 36)
	if _, err := io.ReadFull(random, drawn); err != nil {
		return "", "", err
	}
	id = hex.EncodeToString(drawn[:4])
	token = tokenStart + id + "." + base64.RawURLEncoding.EncodeToString(drawn[4:])
	t.Digest = digestOf(token)
	if t.Collections == nil {
		t.Collections = []string{}
	}
	return id, token, edit(b, "tokens.json", func(f *tokensFile) error {
		tokens := maps.Clone(f.Tokens)
		if tokens == nil {
			tokens = map[string]Token{}
		}
		tokens[id] = t
		*f = tokensFile{schema, tokens}
		return nil
	})
}

// RemoveToken removes a program's account.
func (b *Book) RemoveToken(id string) error {
	return edit(b, "tokens.json", func(f *tokensFile) error {
		tokens := maps.Clone(f.Tokens)
		if _, ok := tokens[id]; !ok {
			return fault.Unknown("token", id, "", maps.Keys(tokens))
		}
		delete(tokens, id)
		*f = tokensFile{schema, tokens}
		return nil
	})
}

// Bearer tells whose token this is.
func (b *Book) Bearer(token string, now time.Time) (Who, error) {
	tokens, err := b.Tokens()
	if err != nil {
		return Who{}, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(token, tokenStart), ".")
	t, ok := tokens[id]
	// The digest of a token drawn from 256 bits tells nothing by the time it takes to compare.
	if !ok || t.Digest != digestOf(token) || !t.Expires.IsZero() && !now.Before(t.Expires) {
		return Who{}, ErrDenied
	}
	return Who{Name: t.Name, Email: t.Name + "@token." + id, Role: t.Role, Collections: t.Collections, Program: true}, nil
}

func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}
