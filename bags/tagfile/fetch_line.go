package tagfile

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// A FetchLine is one entry of fetch.txt: URL LENGTH FILEPATH, length -1 for "-".
type FetchLine struct {
	Url    string
	Length int64
	Path   string
}

var (
	errFetchLine   = errors.New("want a URL, a length or \"-\", and a path")
	errFetchURL    = errors.New("the URL is not absolute")
	errFetchLength = errors.New("the length is neither a number nor \"-\"")
)

// ParseFetchLine reads one line (RFC 8493, 2.2.3). The path may hold spaces.
func ParseFetchLine(s string) (FetchLine, error) {
	i := strings.IndexAny(s, " \t")
	if i <= 0 {
		return FetchLine{}, errFetchLine
	}
	rest := strings.TrimLeft(s[i:], " \t")
	j := strings.IndexAny(rest, " \t")
	if j <= 0 {
		return FetchLine{}, errFetchLine
	}
	f := FetchLine{Url: s[:i], Length: -1, Path: strings.TrimLeft(rest[j:], " \t")}
	if f.Path == "" {
		return FetchLine{}, errFetchLine
	}
	if u, err := url.Parse(f.Url); err != nil || !u.IsAbs() {
		return f, errFetchURL
	}
	if rest[:j] == "-" {
		return f, nil
	}
	n, err := strconv.ParseUint(rest[:j], 10, 63)
	if err != nil {
		return f, errFetchLength
	}
	f.Length = int64(n)
	return f, nil
}
