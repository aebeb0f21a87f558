package steps

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bagpipe/bags/tagfile"
	"bagpipe/layout/disk"
)

// A bag made anew differs from the deposited one in its date, and where the metadata
// changed in its tag files. The rules are:
//
//   - a bag that differs in the labels of its making alone is the deposited one: the
//     stored bag stays as it is;
//   - a bag of the same payload with other tag files is a revision: ID-r2 beside ID, then
//     ID-r3; of a later version ID-v2-r2;
//   - a bag of another payload is never put beside: it is a system failure, as a new
//     payload is a new version.

// likeness is how a stored bag compares with the item's own.
type likeness int

const (
	otherBag    likeness = iota // another payload, or no bag
	revisedBag                  // the same payload, other tag files
	redatedBag                  // the same but for the labels of its making
	sameBagging                 // the same
)

// labels of a bag-info.txt that tell of the making alone.
var makingLabels = []string{"Bagging-Date", "Bag-Software-Agent"}

// revisionDir is the place of revision n of the bag that belongs at to.
func revisionDir(to string, n int) string {
	if n == 1 {
		return to
	}
	return to + "-r" + strconv.Itoa(n)
}

// findRevision looks for the item's own bag among the revisions in the store, and answers
// the first free place when there is none like it.
func findRevision(from, to string) (at string, how likeness, err error) {
	for n := 1; ; n++ {
		at = revisionDir(to, n)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return at, revisedBag, nil
		} else if err != nil {
			return "", otherBag, err
		}
		how, err = compareBags(from, at)
		if err != nil || how != revisedBag {
			return at, how, err
		}
	}
}

// newestRevision is the last of a bag's revisions in the store; to itself when there is
// none.
func newestRevision(to string) string {
	for n := 2; ; n++ {
		if _, err := os.Lstat(revisionDir(to, n)); err != nil {
			return revisionDir(to, n-1)
		}
	}
}

// compareBags compares two bags by their manifests, which vouch for all the rest.
func compareBags(a, b string) (likeness, error) {
	same, err := sameBag(a, b)
	switch {
	case err != nil:
		return otherBag, err
	case same:
		return sameBagging, nil
	}
	payload, err := differing(a, b, "manifest-")
	if err != nil || payload == nil || len(payload) > 0 {
		return otherBag, err
	}
	tags, err := differing(a, b, "tagmanifest-")
	if err != nil || tags == nil || slices.ContainsFunc(tags, func(p string) bool { return p != "bag-info.txt" }) {
		return revisedBag, err
	}
	redated, err := sameButMaking(a, b)
	if err != nil || !redated {
		return revisedBag, err
	}
	return redatedBag, nil
}

// differing lists the paths that the manifests of both bags, whose names begin with kind,
// have different lines for. nil: no manifest is in both.
func differing(a, b, kind string) (paths []string, err error) {
	names, err := filepath.Glob(filepath.Join(a, kind+"*.txt"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		left, err := disk.ReadFile(name)
		if err != nil {
			return nil, err
		}
		right, err := disk.ReadFile(filepath.Join(b, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if paths == nil {
			paths = []string{}
		}
		if !bytes.Equal(left, right) {
			paths = append(paths, oddLines(string(left), string(right))...)
		}
	}
	return paths, nil
}

// oddLines gives the paths of manifest lines that only one of two manifests has.
func oddLines(left, right string) (paths []string) {
	count := map[string]int{}
	for line := range strings.Lines(left) {
		count[line]++
	}
	for line := range strings.Lines(right) {
		count[line]--
	}
	for line, n := range count {
		if n != 0 {
			_, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			paths = append(paths, strings.TrimLeft(path, " *"))
		}
	}
	return paths
}

// sameButMaking reports whether two bags' bag-infos differ in the labels of the making
// alone.
func sameButMaking(a, b string) (bool, error) {
	var infos [2][]tagfile.Field
	for i, dir := range []string{a, b} {
		fields, err := tagfile.BagInfo(dir)
		if err != nil {
			return false, err
		}
		infos[i] = slices.DeleteFunc(fields, func(f tagfile.Field) bool {
			return slices.ContainsFunc(makingLabels, func(l string) bool { return strings.EqualFold(l, f.Label) })
		})
	}
	return slices.Equal(infos[0], infos[1]), nil
}
