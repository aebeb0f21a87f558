package odb

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Person is who wrote or made a commit, and when.
type Person struct {
	Name, Email string
	When        time.Time
}

// Commit is a commit's bytes, read.
type Commit struct {
	Tree              Hash
	Parents           []Hash
	Author, Committer Person
	Message           string
}

// AppendCommit appends a commit's bytes. Names are cleaned as Git cleans them.
func AppendCommit(dst []byte, tree Hash, parents []Hash, author, committer Person, message string) []byte {
	dst = append(dst, "tree "...)
	dst = appendHex(dst, tree)
	for _, p := range parents {
		dst = append(dst, "\nparent "...)
		dst = appendHex(dst, p)
	}
	dst = append(dst, "\nauthor "...)
	dst = author.Append(dst)
	dst = append(dst, "\ncommitter "...)
	dst = committer.Append(dst)
	dst = append(dst, "\n\n"...)
	for i := range len(message) {
		if message[i] != 0 { // a commit with a NUL fails fsck
			dst = append(dst, message[i])
		}
	}
	if len(message) > 0 && message[len(message)-1] != '\n' {
		dst = append(dst, '\n')
	}
	return dst
}

// WithSignature gives a commit's bytes with the header that holds a signature of them.
func WithSignature(commit []byte, armored string) []byte {
	head, rest, _ := bytes.Cut(commit, []byte("\n\n"))
	lines := strings.ReplaceAll(strings.TrimRight(armored, "\n"), "\n", "\n ")
	return slices.Concat(head, []byte("\n"+SignatureHeader+lines+"\n\n"), rest)
}

// SignatureHeader begins the line of a commit that holds its signature.
const SignatureHeader = "gpgsig "

// SplitSignature parts a commit's bytes into what was signed and the signature; "": there is
// none.
func SplitSignature(commit []byte) (payload []byte, armored string) {
	head, rest, ok := bytes.Cut(commit, []byte("\n\n"))
	if !ok {
		return commit, ""
	}
	var kept [][]byte
	var sig []string
	in := false
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		switch after, begins := bytes.CutPrefix(line, []byte(SignatureHeader)); {
		case begins && sig == nil:
			in, sig = true, append(sig, string(after))
		case in && len(line) > 0 && line[0] == ' ':
			sig = append(sig, string(line[1:]))
		default:
			in, kept = false, append(kept, line)
		}
	}
	if sig == nil {
		return commit, ""
	}
	return slices.Concat(bytes.Join(kept, []byte("\n")), []byte("\n\n"), rest), strings.Join(sig, "\n")
}

const hexDigits = "0123456789abcdef"

func appendHex(dst []byte, h Hash) []byte {
	for _, c := range h {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// Append writes NAME <EMAIL> SECONDS ZONE.
func (p Person) Append(dst []byte) []byte {
	dst = appendClean(dst, p.Name, "unknown")
	dst = append(dst, " <"...)
	dst = appendClean(dst, p.Email, "")
	dst = append(dst, "> "...)
	dst = strconv.AppendInt(dst, max(0, p.When.Unix()), 10)
	return append(dst, " +0000"...)
}

// appendClean leaves out the bytes that would break the line (line ends, NUL and angle
// brackets) and those that Git strips from both ends.
func appendClean(dst []byte, s, instead string) []byte {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune(".,:;<>\"\\'", r) })
	s = cmp.Or(s, instead)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '<' || c == '>' || c == 0:
		case c < ' ':
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// ParseCommit reads a commit. Headers it does not know are passed over.
func ParseCommit(data []byte) (Commit, error) {
	var c Commit
	text := string(data) // one copy, which names and the message share
	for first := true; ; first = false {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return c, fmt.Errorf("%w: commit without end of header", errCorrupt)
		}
		text = rest
		key, value, _ := strings.Cut(line, " ")
		if first && key != "tree" {
			return c, fmt.Errorf("%w: commit without tree", errCorrupt)
		}
		if len(line) == 0 {
			break
		}
		if err := c.header(key, value); err != nil {
			return c, err
		}
	}
	c.Message = text
	return c, nil
}

// ParentsOf gives the parents of a commit from its bytes, of which it reads no more.
func ParentsOf(data []byte) (parents []Hash, err error) {
	for {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if value, is := bytes.CutPrefix(line, []byte("parent ")); is {
			h, err := ParseHash(string(value))
			if err != nil {
				return nil, fmt.Errorf("%w: commit: parent: %w", errCorrupt, err)
			}
			parents = append(parents, h)
		} else if !bytes.HasPrefix(line, []byte("tree ")) {
			return parents, nil
		}
		data = rest
	}
}

func (c *Commit) header(key, value string) (err error) {
	switch key {
	case "tree":
		c.Tree, err = ParseHash(value)
	case "parent":
		var h Hash
		h, err = ParseHash(value)
		c.Parents = append(c.Parents, h)
	case "author":
		c.Author = parsePerson(value)
	case "committer":
		c.Committer = parsePerson(value)
	}
	if err != nil {
		return fmt.Errorf("%w: commit: %s: %w", errCorrupt, key, err)
	}
	return nil
}

// parsePerson is lenient: a broken time is the year 1970, as Git shows it.
func parsePerson(s string) Person {
	name, rest, _ := strings.Cut(s, "<")
	email, when, _ := strings.Cut(rest, ">")
	p := Person{Name: strings.TrimSpace(name), Email: email}
	var fields [2]string // seconds, and the zone
	n := 0
	for f := range strings.FieldsSeq(when) {
		if n == len(fields) {
			break
		}
		fields[n] = f
		n++
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return p
	}
	p.When = time.Unix(seconds, 0).UTC()
	if n > 1 {
		p.When = p.When.In(parseZone(fields[1]))
	}
	return p
}

func parseZone(s string) *time.Location {
	n, err := strconv.Atoi(s)
	if err != nil || n == 0 {
		return time.UTC
	}
	return time.FixedZone(s, (n/100)*3600+(n%100)*60)
}
