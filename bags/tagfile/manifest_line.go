package tagfile

import (
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"bagpipe/bags/files"
)

// manifestLine is one entry of a manifest, the path as written.
type manifestLine struct {
	Sum  string
	Path string
}

var (
	errManifestLine = errors.New("want a check sum, spaces and a path")
	errDigest       = errors.New("the check sum is not hexadecimal or not of the algorithm's length")
)

// ParseManifestLine reads "CHECKSUM FILEPATH" (RFC 8493, 2.1.3).
func ParseManifestLine(s string) (manifestLine, error) {
	i := strings.IndexAny(s, " \t")
	if i <= 0 {
		return manifestLine{}, errManifestLine
	}
	p := strings.TrimLeft(s[i:], " \t")
	if p == "" {
		return manifestLine{}, errManifestLine
	}
	return manifestLine{Sum: s[:i], Path: p}, nil
}

// DecodeSum reads a hexadecimal digest of either case.
func DecodeSum(s string, a files.Algorithm) ([]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil || a.Known() && len(b) != a.Size() {
		return nil, errDigest
	}
	return b, nil
}

// WriteManifest writes one line per path; sums[i] belongs to paths[i].
func WriteManifest(w io.Writer, paths []string, sums [][]byte) error {
	var line []byte
	for i, p := range paths {
		line = hex.AppendEncode(line[:0], sums[i])
		line = append(line, "  "...)
		line = append(line, EncodeManifestPath(p)...)
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

var manifestEncoder = strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D")

// EncodeManifestPath encodes CR, LF and %, and only those (RFC 8493, 2.1.3).
func EncodeManifestPath(p string) string {
	if !strings.ContainsAny(p, "%\n\r") {
		return p
	}
	return manifestEncoder.Replace(p)
}

// DecodeManifestPath reverses EncodeManifestPath. bare reports whether a '%' stood there
// that begins none of the three.
func DecodeManifestPath(s string) (p string, bare bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, false
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, ok := manifestEscape(s[i+1], s[i+2]); ok {
				b = append(b, c)
				i += 2
				continue
			}
		}
		bare = bare || s[i] == '%'
		b = append(b, s[i])
	}
	return string(b), bare
}

func manifestEscape(hi, lo byte) (byte, bool) {
	switch {
	case hi == '2' && lo == '5':
		return '%', true
	case hi == '0' && lo|0x20 == 'a':
		return '\n', true
	case hi == '0' && lo|0x20 == 'd':
		return '\r', true
	}
	return 0, false
}

// ManifestAlgorithm gives the ALGORITHM of prefixALGORITHM.txt.
func ManifestAlgorithm(name, prefix string) (files.Algorithm, bool) {
	a, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return "", false
	}
	a, ok = strings.CutSuffix(a, ".txt")
	return files.Algorithm(a), ok && a != "" && !strings.Contains(a, "/")
}
