package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The rules are: the SHA-256 tree stands over the files of items/, folder by folder. A folder's
// sum is that of its listing, which has a line for each name, in order, as sha256sum writes
// it: SUM, two spaces, NAME. Sums of folders above the items' are remembered in .bagpipe by
// the name that Git has for them; without that file they are reckoned anew.

// sumsFile remembers the sums of folders.
const sumsFile = layout.StateDir + "/sums"

// sums reckons the SHA-256 tree.
type sums struct {
	v     gitstore.View
	known map[gitstore.Hash]string
	fresh int // that were not remembered
}

// newSums reads what was remembered; of a line that is none it forgets all.
func newSums(l *ledger.Ledger, v gitstore.View) *sums {
	s := &sums{v: v, known: map[gitstore.Hash]string{}}
	f, err := os.Open(l.Path(sumsFile))
	if err != nil {
		return s
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, sum, ok := strings.Cut(lines.Text(), " ")
		h, err := gitstore.ParseHash(name)
		if !ok || err != nil || len(sum) != hex.EncodedLen(sha256.Size) {
			return &sums{v: v, known: map[gitstore.Hash]string{}}
		}
		s.known[h] = sum
	}
	return s
}

// save remembers the sums for the next time; it is not synced, as it costs time alone.
func (s *sums) save(l *ledger.Ledger) error {
	if s.fresh == 0 || l.ReadOnly {
		return nil
	}
	var b strings.Builder
	for h, sum := range s.known {
		fmt.Fprintf(&b, "%s %s\n", h, sum)
	}
	temp := l.Path(sumsFile) + "." + string(l.ID)
	if err := os.WriteFile(temp, []byte(b.String()), 0o666); err != nil {
		return errors.Join(err, layout.RemoveIfThere(temp))
	}
	return os.Rename(temp, l.Path(sumsFile))
}

// top is the sum of all records.
func (s *sums) top() (string, error) { return s.folder(layout.ItemsDir, gitstore.Hash{}) }

// folder gives the sum of a folder, which git knows by a name; zero: it is not known.
func (s *sums) folder(dir string, name gitstore.Hash) (string, error) {
	if sum, ok := s.known[name]; ok && !name.IsZero() {
		return sum, nil
	}
	text, err := s.listing(dir)
	if err != nil {
		return "", err
	}
	sum := hexSum(text)
	if !name.IsZero() && strings.Count(dir, "/") < ledger.ItemDepth {
		s.known[name] = sum
		s.fresh++
	}
	return sum, nil
}

// listing gives the text whose sum is a folder's.
func (s *sums) listing(dir string) ([]byte, error) {
	entries, err := s.v.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is no item yet
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b gitstore.Entry) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for _, e := range entries {
		path := dir + "/" + e.Name
		var sum string
		if e.IsDir {
			sum, err = s.folder(path, e.Hash)
		} else {
			var data []byte
			data, err = s.v.ReadFile(path)
			sum = hexSum(data)
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name)
	}
	return []byte(b.String()), nil
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
