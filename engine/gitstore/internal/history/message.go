package history

import (
	"strings"
	"unicode"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
)

// Trailer is one KEY: VALUE line of a message's last block.
type Trailer struct{ Key, Value string }

// NewCommit gives a commit as people read it.
func NewCommit(h odb.Hash, c odb.Commit) Commit {
	subject, rest, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	body, trailers := splitTrailers(strings.Trim(rest, "\n"))
	return Commit{
		Hash: h, Parents: c.Parents,
		Author:    repo.Signature{Name: c.Author.Name, Email: c.Author.Email},
		Committer: repo.Signature{Name: c.Committer.Name, Email: c.Committer.Email},
		When:      c.Committer.When,
		Subject:   subject, Body: body, Trailers: trailers,
	}
}

// splitTrailers takes the last block off when each of its lines is KEY: VALUE,
// or goes on with the line before by leading white space.
func splitTrailers(text string) (body string, trailers []Trailer) {
	block := text
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		body, block = strings.TrimRight(text[:i], "\n"), text[i+2:]
	}
	for line := range strings.SplitSeq(block, "\n") {
		if n := len(trailers); n > 0 && line != "" && unicode.IsSpace(rune(line[0])) {
			trailers[n-1].Value += "\n" + strings.TrimSpace(line)
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(key) {
			return text, nil
		}
		trailers = append(trailers, Trailer{key, strings.TrimSpace(value)})
	}
	return body, trailers
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}
