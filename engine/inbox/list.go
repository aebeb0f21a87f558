package inbox

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: a list is a text of lines, each the path of a file relative to the
// list's folder, alone or after its digest, as md5sum, sha256sum and BagIt write
// them. Empty lines and those that begin with # do not count. What it lists must be
// there before the drop settles; the digests are compared once it is taken.

// RuleList is broken by a list that cannot be read, or that a file differs from.
const RuleList = "list"

// Bounds of a list.
const (
	maxListBytes = 64 << 20
	maxListLine  = 8 << 10
)

// listed is one line of a list.
type listed struct {
	path string // relative, local
	sum  string // hexadecimal, lower case; empty: none is given
}

// lackingOf reads the lists. One that cannot be read lacks nothing: it is said when
// the drop is taken.
func lackingOf(ctx context.Context, dir string, lists []string) string {
	for _, name := range lists {
		n, lacks, first := 0, 0, ""
		err := readList(dir, name, func(l listed) error {
			n++
			if _, err := l.find(dir); errors.Is(err, fs.ErrNotExist) {
				if lacks++; lacks == 1 {
					first = l.path
				}
			}
			return ctx.Err()
		})
		if err == nil && lacks > 0 {
			return fmt.Sprintf("waits for %d of the %d files that %s lists, first %s", lacks, n, layout.EncodePath(name), layout.EncodePath(first))
		}
	}
	return ""
}

// find gives the path of what is listed; BagIt writes line ends and per cent signs
// in names as %0D, %0A and %25.
func (l listed) find(dir string) (string, error) {
	at := filepath.Join(dir, filepath.FromSlash(l.path))
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(l.path, "%") {
		at = filepath.Join(dir, bagName.Replace(l.path))
		info, err = os.Lstat(at)
	}
	if err == nil && !info.Mode().IsRegular() {
		return at, content.Bad(RuleList, l.path, "is listed as a file, and is none")
	}
	return at, err
}

var bagName = strings.NewReplacer("%0A", "\n", "%0a", "\n", "%0D", "\r", "%0d", "\r", "%25", "%")

// check compares one file with its digest.
func (l listed) check(ctx context.Context, dir, list string) (err error) {
	at, err := l.find(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return content.Bad(RuleList, l.path, fmt.Sprintf("is listed in %s, and is not there", layout.EncodePath(list)))
	}
	if err != nil || l.sum == "" {
		return err
	}
	h, algorithm := hashOf(len(l.sum))
	f, _, err := content.OpenRegular(at, l.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := content.Buffers.Get().(*[content.BufferSize]byte)
	defer content.Buffers.Put(buf)
	if _, err := io.CopyBuffer(h, content.ReaderOf(ctx, f), buf[:]); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != l.sum {
		return content.Bad(RuleList, l.path, fmt.Sprintf("its %s is %s; %s says %s: it was damaged or changed on its way, drop it again", algorithm, got, layout.EncodePath(list), l.sum))
	}
	return nil
}

// hashOf gives the algorithm whose digests have so many hexadecimal digits.
func hashOf(digits int) (hash.Hash, string) {
	switch digits {
	case 2 * md5.Size:
		return md5.New(), "MD5"
	case 2 * sha1.Size:
		return sha1.New(), "SHA-1"
	case 2 * sha256.Size:
		return sha256.New(), "SHA-256"
	case 2 * sha512.Size:
		return sha512.New(), "SHA-512"
	}
	return nil, ""
}

// readList tells of each line of a list; a line that is none is a *BadError.
func readList(dir, name string, tell func(listed) error) (err error) {
	f, info, err := content.OpenRegular(filepath.Join(dir, name), name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxListBytes {
		return content.Bad(RuleList, name, fmt.Sprintf("is a list of %d bytes; the limit is %d", info.Size(), int64(maxListBytes)))
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxListBytes))
	lines.Buffer(nil, maxListLine)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSuffix(strings.TrimPrefix(lines.Text(), "\ufeff"), "\r")
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") {
			continue
		}
		l, ok := parseListed(text)
		if !ok {
			return content.Bad(RuleList, name, fmt.Sprintf("line %d: names no file in the folder: %.200q", n, text))
		}
		if err := tell(l); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return content.Bad(RuleList, name, fmt.Sprintf("has a line of more than %d bytes", maxListLine))
	}
	return lines.Err()
}

func parseListed(text string) (listed, bool) {
	l := listed{path: text}
	if sum, rest, ok := cutSum(text); ok {
		l = listed{path: rest, sum: sum}
	}
	l.path = path.Clean(strings.TrimPrefix(l.path, "./"))
	return l, filepath.IsLocal(l.path) && l.path != "." && len(l.path) < unix.PathMax && !strings.Contains(l.path, "\x00")
}

// cutSum takes the digest off a line; a * before the name stood for binary mode.
func cutSum(text string) (sum, rest string, ok bool) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return "", "", false
	}
	sum = strings.ToLower(text[:i])
	if h, _ := hashOf(len(sum)); h == nil {
		return "", "", false
	}
	if _, err := hex.DecodeString(sum); err != nil {
		return "", "", false
	}
	return sum, strings.TrimPrefix(strings.TrimLeft(text[i:], " \t"), "*"), true
}
