package bags

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"

	"golang.org/x/text/encoding"
	"golang.org/x/text/unicode/norm"
)

// reading is a bag as its files and tag files have it. Used by one goroutine.
type reading struct {
	tree          *files.Tree
	from          contents
	version       tagfile.Version
	enc           encoding.Encoding
	files         map[string]int // index in tree.Files, by path
	folders       map[string]bool
	nfc           map[string]string // a path by its normalised form; made when it is asked for
	payload       map[string]*listed
	tags          map[string]*listed
	holes         map[string]bool            // paths in fetch.txt
	fetches       []tagfile.FetchLine        // those that are in order, with clean paths
	payloads      []files.Algorithm          // of the payload manifests, sorted
	manifestNames map[files.Algorithm]string // the payload manifests' files
	tagSets       []tagManifest
}

// listed is a file as the manifests have it.
type listed struct {
	sums  []listedSum
	known files.Set
	first [1]listedSum // where sums begins: most files have one
}

type listedSum struct {
	algorithm files.Algorithm
	sum       []byte
}

type tagManifest struct {
	algorithm files.Algorithm
	name      string
}

func newReading(t *files.Tree, from contents) reading {
	r := reading{
		tree: t, from: from, version: tagfile.V1,
		files: make(map[string]int, len(t.Files)), folders: make(map[string]bool, len(t.Folders)),
		payload: map[string]*listed{}, tags: map[string]*listed{}, holes: map[string]bool{},
		manifestNames: map[files.Algorithm]string{},
	}
	for i := range t.Files {
		r.files[t.Files[i].Path] = i
	}
	for i := range t.Folders {
		r.folders[t.Folders[i].Path] = true
	}
	return r
}

func (r *reading) has(p string) bool {
	_, ok := r.files[p]
	return ok
}

// own gives a path that does not keep the line it stood in, digest and all, in memory
// (100,000 files: 15 MB).
func (r *reading) own(p string) string {
	if i, ok := r.files[p]; ok {
		return r.tree.Files[i].Path
	}
	return strings.Clone(p)
}

// normalised finds the one file whose name is p but for its normalisation.
func (r *reading) normalised(p string) (string, bool) {
	if files.IsPlain(p) {
		return "", false
	}
	if r.nfc == nil {
		r.nfc = map[string]string{}
		for i := range r.tree.Files {
			f := r.tree.Files[i].Path
			if files.IsPlain(f) {
				continue
			}
			n := norm.NFC.String(f)
			if _, twice := r.nfc[n]; twice {
				f = "" // two candidates: no guess
			}
			r.nfc[n] = f
		}
	}
	f := r.nfc[norm.NFC.String(p)]
	return f, f != ""
}

func (r *reading) unfetched() bool {
	for p := range r.holes {
		if !r.has(p) {
			return true
		}
	}
	return false
}

func (r *reading) inEvery(e *listed) bool {
	return !slices.ContainsFunc(r.payloads, func(a files.Algorithm) bool { return !e.hasAlgorithm(a) })
}

func (e *listed) hasAlgorithm(a files.Algorithm) bool {
	return slices.ContainsFunc(e.sums, func(s listedSum) bool { return s.algorithm == a })
}

func (r *reading) lacking(e *listed) string {
	var names []string
	for _, a := range r.payloads {
		if !e.hasAlgorithm(a) {
			names = append(names, layout.EncodePath(r.manifestNames[a]))
		}
	}
	return strings.Join(names, ", ")
}

func (e *listed) sum(a files.Algorithm) []byte {
	if e == nil {
		return nil
	}
	for _, s := range e.sums {
		if s.algorithm == a {
			return s.sum
		}
	}
	return nil
}

// since1 is the severity of a rule that 1.0 brought.
func (r *reading) since1() finding.Severity {
	if r.version.Before(tagfile.V1) {
		return finding.Warning
	}
	return finding.Error
}

// declarationMax is far more than two lines need.
const declarationMax = 64 << 10

func (r *reading) readSmall(p string) ([]byte, error) {
	f, err := r.from.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(f, declarationMax))
	return b.Bytes(), err
}
