package target

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Likeness is how a stored bag compares with the item's own.
type Likeness int

// From unlike to alike.
const (
	OtherBag    Likeness = iota // another payload, or no bag
	RevisedBag                  // the same payload, other tag files
	RedatedBag                  // the same but for the labels of its making and the history until then
	SameBagging                 // the same
)

// MakingLabels are the labels of a bag-info.txt that tell of the making alone.
var MakingLabels = []string{"Bagging-Date", "Bag-Software-Agent"}

// RecordsPrefix is where a bag has its item's records, and PremisFile one of them.
const (
	RecordsPrefix = "bagpipe/"
	PremisFile    = "premis.xml"
)

// ofMaking reports whether a tag file tells of the making alone: the history until then.
func ofMaking(p string) bool {
	return p == RecordsPrefix+layout.ExecutionJSON || p == RecordsPrefix+PremisFile || strings.HasPrefix(p, RecordsPrefix+layout.PinnedDir+"/")
}

// Compare compares two bags by their manifests, which vouch for all the rest. Of two bags
// that are the same, the tag manifests alone are read: they vouch for the others.
func Compare(a, b string) (Likeness, error) {
	how, err := compare(a, b, isTagManifest)
	if err != nil || how == SameBagging {
		return how, err
	}
	return compare(a, b, isVoucher)
}

func compare(a, b string, by func(name string) bool) (Likeness, error) {
	left, err := localVouchers(a, by)
	if err != nil {
		return OtherBag, err
	}
	right, err := localVouchers(b, by)
	if err != nil {
		return OtherBag, err
	}
	return left.compare(right)
}

// localVouchers reads those vouchers of a bag in a folder of this machine that are asked for.
func localVouchers(dir string, asked func(name string) bool) (vouchers, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	v := vouchers{}
	for _, n := range names {
		if !asked(n.Name()) || !n.Type().IsRegular() {
			continue
		}
		if v[n.Name()], err = disk.ReadFile(filepath.Join(dir, n.Name())); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v vouchers) compare(o vouchers) (Likeness, error) {
	if none := (vouchers{}).digest(); v.digest() == o.digest() && v.digest() != none {
		return SameBagging, nil
	}
	payload, known := v.differing(o, "manifest-")
	if !known || len(payload) > 0 {
		return OtherBag, nil
	}
	tags, known := v.differing(o, "tagmanifest-")
	if !known || slices.ContainsFunc(tags, func(p string) bool { return p != "bag-info.txt" && !ofMaking(p) }) {
		return RevisedBag, nil
	}
	left, err := v.info()
	if err != nil {
		return RevisedBag, err
	}
	right, err := o.info()
	if err != nil || !slices.Equal(left, right) {
		return RevisedBag, err
	}
	return RedatedBag, nil
}

// SameBag compares the tag manifests, which vouch for all the rest.
func SameBag(a, b string) (bool, error) {
	how, err := Compare(a, b)
	return how == SameBagging, err
}

// differing lists the paths that the manifests of both bags, whose names begin with kind,
// have different lines for. known: a manifest is in both.
func (v vouchers) differing(o vouchers, kind string) (paths []string, known bool) {
	for name, left := range v {
		right, both := o[name]
		if !both || !strings.HasPrefix(name, kind) {
			continue
		}
		known = true
		if !bytes.Equal(left, right) {
			paths = append(paths, oddLines(string(left), string(right))...)
		}
	}
	return paths, known
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

// info is the bag-info but for the labels of the making.
func (v vouchers) info() ([]tagfile.Field, error) {
	fields, err := tagfile.ReadInfo(bytes.NewReader(v["bag-info.txt"]))
	return slices.DeleteFunc(fields, func(f tagfile.Field) bool {
		return slices.ContainsFunc(MakingLabels, func(l string) bool { return strings.EqualFold(l, f.Label) })
	}), err
}

// Digest is that of a bag's tag manifests, as a copy's record has it.
func Digest(dir string) (string, error) {
	v, err := localVouchers(dir, isTagManifest)
	return v.digest(), err
}
