package target

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// declaration makes a folder a bag: where nothing can be renamed it is written last.
const declaration = tagfile.DeclarationFile

// vouchers are a bag's tag files that a comparison needs: manifests, bag-info.txt, bagit.txt.
type vouchers map[string][]byte

func isVoucher(name string) bool {
	return !strings.Contains(name, "/") && (strings.HasPrefix(name, "manifest-") || strings.HasPrefix(name, "tagmanifest-") ||
		name == "bag-info.txt" || name == declaration)
}

func isTagManifest(name string) bool {
	return isVoucher(name) && strings.HasPrefix(name, "tagmanifest-")
}

// digest is that of the tag manifests, each with its name before it.
func (v vouchers) digest() string {
	sum := sha512.New()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if strings.HasPrefix(name, "tagmanifest-") {
			fmt.Fprintf(sum, "%s\n", name)
			sum.Write(v[name])
		}
	}
	return "sha512:" + hex.EncodeToString(sum.Sum(nil))
}

// strongest lists the algorithms in the order they are chosen in.
var strongest = []files.Algorithm{files.SHA512, files.SHA256, files.SHA384, files.SHA224, files.SHA1, files.MD5}

// sums gives the digest of every file by the strongest algorithm of which the bag has both
// manifests.
func (v vouchers) sums() (a files.Algorithm, sums map[string][]byte, err error) {
	for _, a = range strongest {
		payload, tags := v["manifest-"+string(a)+".txt"], v["tagmanifest-"+string(a)+".txt"]
		if payload == nil || tags == nil {
			continue
		}
		sums = map[string][]byte{}
		for _, data := range [][]byte{payload, tags} {
			for line := range bytes.Lines(data) {
				if err := readSum(string(bytes.TrimRight(line, "\r\n")), a, sums); err != nil {
					return a, nil, err
				}
			}
		}
		return a, sums, nil
	}
	return "", nil, damage("it has no payload manifest with a tag manifest of the same algorithm")
}

func readSum(line string, a files.Algorithm, sums map[string][]byte) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	l, err := tagfile.ParseManifestLine(line)
	if err != nil {
		return damage("a manifest's line: %v", err)
	}
	sum, err := tagfile.DecodeSum(l.Sum, a)
	if err != nil {
		return damage("a manifest's line: %v", err)
	}
	p, _ := tagfile.DecodeManifestPath(strings.TrimPrefix(l.Path, "*"))
	sums[path.Clean(p)] = sum
	return nil
}

// seen compares what is found of a bag with what its vouchers say.
type seen struct {
	sums  map[string][]byte
	files int
	bytes int64
}

// take judges one file; sum nil: it was not read.
func (s *seen) take(name string, size int64, sum []byte) error {
	s.files, s.bytes = s.files+1, s.bytes+size
	if strings.HasPrefix(name, "tagmanifest-") && !strings.Contains(name, "/") {
		return nil // by the digest
	}
	want, listed := s.sums[name]
	switch {
	case !listed:
		return damage("%s is in no manifest", layout.EncodePath(name))
	case sum != nil && !bytes.Equal(sum, want):
		return damage("%s is not what the manifest says", layout.EncodePath(name))
	}
	delete(s.sums, name)
	return nil
}

// end judges what was not found, except what is still to come.
func (s *seen) end(except string) error {
	delete(s.sums, except)
	for _, name := range slices.Sorted(maps.Keys(s.sums)) {
		return damage("%s is missing, as %d files are", layout.EncodePath(name), len(s.sums))
	}
	return nil
}

// verify judges the bag at a folder of a backend by its own vouchers, which must have the
// digest want unless that is "".
func verify(ctx context.Context, b backend, at, want string, level Level, tell func(int64)) (n int, size int64, err error) {
	v, err := readVouchers(ctx, b, at)
	if err != nil {
		return 0, 0, err
	}
	return v.verify(ctx, b, at, want, "", level, nil, tell)
}

// verify is that of vouchers that may stand elsewhere; except is a file that may be missing, and
// vouched are files that the store says it has as the manifests want them.
func (v vouchers) verify(ctx context.Context, b backend, at, want, except string, level Level, vouched map[string]bool, tell func(int64)) (n int, size int64, err error) {
	if got := v.digest(); want != "" && got != want {
		return 0, 0, damage("its tag manifests are not those that were written")
	}
	a, sums, err := v.sums()
	if err != nil {
		return 0, 0, err
	}
	s := seen{sums: sums}
	var plan []files.Planned // sorted by who hashes it
	err = b.list(ctx, at, true, func(name string, size int64) error {
		if level == Exists || vouched[name] {
			return s.take(name, size, nil)
		}
		plan = append(plan, files.Planned{Index: len(plan), Path: name, Size: size, Set: files.SetOf(a)})
		return nil
	})
	if err == nil {
		err = hashAt(ctx, b, at, plan, a, tell, func(i int, sum []byte) error { return s.take(plan[i].Path, plan[i].Size, sum) })
	}
	if err != nil {
		return s.files, s.bytes, unsound(err)
	}
	return s.files, s.bytes, s.end(except)
}

// hashAt digests files below a folder: by the server, where it does, else by reading them. plan
// is reordered by who hashes it; each is given the index in the order it had.
func hashAt(ctx context.Context, b backend, at string, plan []files.Planned, a files.Algorithm, tell func(int64), each func(i int, sum []byte) error) error {
	if len(plan) == 0 {
		return nil
	}
	names := make([]string, len(plan))
	for i := range plan {
		names[i] = plan[i].Path
	}
	does, err := b.digests(ctx, at, names, a, func(i int, sum []byte) error {
		if tell != nil {
			tell(plan[i].Size)
		}
		return each(i, sum)
	})
	if does || err != nil {
		return err
	}
	return files.HashOpened(ctx, func(p string) (io.ReadCloser, error) { return told(b.open(ctx, at+"/"+p, 0))(tell) }, slices.Clone(plan),
		files.HashOptions{Workers: b.traits().streams}, func(h files.Hashed) error {
			if h.Size != plan[h.Index].Size {
				return damage("%s has another length than it had when it was listed", layout.EncodePath(names[h.Index]))
			}
			return each(h.Index, h.Sums.Of(a))
		})
}

// sumOf gives a file's digest: the server's, where it computes one, else by reading it.
func sumOf(ctx context.Context, b backend, name string, a files.Algorithm) (sum []byte, err error) {
	does, err := b.digests(ctx, path.Dir(name), []string{path.Base(name)}, a, func(_ int, got []byte) error {
		sum = got
		return nil
	})
	if does || err != nil {
		return sum, err
	}
	r, err := b.open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	h := a.New()
	err = copyTold(ctx, h, r, nil)
	return h.Sum(nil), errors.Join(err, r.Close())
}

// unsound makes damage of a file that is not as it was listed, or that the disk does not give.
func unsound(err error) error {
	var broken *files.Error
	var wrong *Damage
	if errors.As(err, &wrong) {
		return wrong
	}
	if down := (*Down)(nil); errors.As(err, &down) { // a connection that is cut says nothing of the copy
		return err
	}
	unread := errors.Is(err, syscall.EIO)
	if unread || errors.Is(err, files.ErrChanged) || errors.As(err, &broken) || errors.Is(err, fs.ErrNotExist) {
		return &Damage{err.Error(), unread}
	}
	return err
}

// readVouchers reads the vouchers of the bag at a folder; fs.ErrNotExist where none is.
func readVouchers(ctx context.Context, b backend, at string) (vouchers, error) {
	v := vouchers{}
	err := b.list(ctx, at, false, func(name string, _ int64) error {
		if !isVoucher(name) {
			return nil
		}
		data, err := readAll(ctx, b, at+"/"+name)
		v[name] = data
		return err
	})
	if err == nil && len(v) == 0 {
		err = fs.ErrNotExist
	}
	return v, err
}

func readAll(ctx context.Context, b backend, name string) ([]byte, error) {
	r, err := b.open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// want is the digest that a file of the bag has: that of its manifests, or of a tag manifest itself.
func (v vouchers) want(a files.Algorithm, sums map[string][]byte, name string) []byte {
	if sum := sums[name]; sum != nil {
		return sum
	}
	return digestOf(a, v[name])
}

func digestOf(a files.Algorithm, data []byte) []byte {
	h := a.New()
	h.Write(data)
	return h.Sum(nil)
}

// asMuch wants a copy to have the files and bytes that are on record.
func asMuch(c layout.DepositCopy, n int, size int64) error {
	if n == c.Files && size == c.Bytes {
		return nil
	}
	return damage("%d files with %d bytes are there, and %d with %d were written", n, size, c.Files, c.Bytes)
}
