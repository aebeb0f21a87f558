package bags

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// fetchLine is one entry of fetch.txt: URL LENGTH FILEPATH, length -1 for "-".
type fetchLine struct {
	url    string
	length int64
	path   string
}

var (
	errFetchLine   = errors.New("want a URL, a length or \"-\", and a path")
	errFetchURL    = errors.New("the URL is not absolute")
	errFetchLength = errors.New("the length is neither a number nor \"-\"")
)

// parseFetchLine reads one line (RFC 8493, 2.2.3). The path may hold spaces.
func parseFetchLine(s string) (fetchLine, error) {
	i := strings.IndexAny(s, " \t")
	if i <= 0 {
		return fetchLine{}, errFetchLine
	}
	rest := strings.TrimLeft(s[i:], " \t")
	j := strings.IndexAny(rest, " \t")
	if j <= 0 {
		return fetchLine{}, errFetchLine
	}
	f := fetchLine{url: s[:i], length: -1, path: strings.TrimLeft(rest[j:], " \t")}
	if f.path == "" {
		return fetchLine{}, errFetchLine
	}
	if u, err := url.Parse(f.url); err != nil || !u.IsAbs() {
		return f, errFetchURL
	}
	if rest[:j] == "-" {
		return f, nil
	}
	n, err := strconv.ParseUint(rest[:j], 10, 63)
	if err != nil {
		return f, errFetchLength
	}
	f.length = int64(n)
	return f, nil
}
