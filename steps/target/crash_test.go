package target_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// swept is a kind of target whose engine is killed: how to open it on a folder of this machine,
// which is dir.
type swept struct {
	kind string
	open func(t *testing.T) (c target.Config, dir string)
}

func sweptKinds() []swept {
	return []swept{
		{target.KindFolder, func(t *testing.T) (target.Config, string) {
			dir := filepath.Join(sample.TempDir(t), "vault")
			return target.Config{Kind: target.KindFolder, Path: dir}, dir
		}},
		{target.KindSFTP, func(t *testing.T) (target.Config, string) {
			dir := filepath.Join(sample.TempDir(t), "vault")
			return target.Config{Kind: target.KindSFTP, Path: dir, SFTPConfig: targettest.NewSFTP(t).SFTPConfig}, dir
		}},
		{target.KindS3, func(t *testing.T) (target.Config, string) {
			s := targettest.NewS3(t, false)
			return target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config}, filepath.Join(s.Dir, "buckets", s.Bucket)
		}},
	}
}

// TestKilledAtEachWrite kills an engine at each write of a put, of a second version's put, and of
// a mend, and in the middle of each file. Then the copies before are as they were, and the next
// call makes what the killed one would have, and leaves nothing else.
func TestKilledAtEachWrite(t *testing.T) {
	for _, kind := range sweptKinds() {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			t.Run(kind.kind+"/"+form, func(t *testing.T) {
				t.Parallel()
				if kind.kind == target.KindS3 {
					sweepOnce(t, kind, form)
					return
				}
				for k := firstInShort(t, 8); ; k += everyInShort(8) {
					if !killedAt(t, kind, form, k) {
						return
					}
				}
			})
		}
	}
}

// everyInShort is how many writes further a sweep goes on: n with -short, and else to the next.
func everyInShort(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// firstInShort is where a sweep by everyInShort begins: tests of other names look at other writes.
func firstInShort(t *testing.T, n int) int {
	return 1 + int(crc32.ChecksumIEEE([]byte(t.Name())))%everyInShort(n)
}

// sweepOnce sweeps on one server, an item after the other.
func sweepOnce(t *testing.T, kind swept, form string) {
	c, dir := kind.open(t)
	for k := firstInShort(t, 8); ; k += everyInShort(8) {
		c.Prefix = fmt.Sprintf("k%d/", k)
		s := sweep{T: t, c: c, dir: filepath.Join(dir, c.Prefix), k: k}
		s.c.Layout = form
		if !s.run() {
			return
		}
	}
}

// TestFullAtEachWrite has the store refuse each write in turn, and all after it: the disk is full, the quota is used
// up, the device fails. Then the copies before are as they were; and once there is room the same engine's next
// call makes what the refused one would have, and leaves nothing else.
func TestFullAtEachWrite(t *testing.T) {
	for _, kind := range sweptKinds() {
		errs := []error{syscall.ENOSPC}
		if kind.kind == target.KindFolder {
			errs = append(errs, syscall.EDQUOT, syscall.EIO)
		}
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			for _, fails := range errs {
				t.Run(fmt.Sprintf("%s/%s/%v", kind.kind, form, fails), func(t *testing.T) {
					t.Parallel()
					c, dir := kind.open(t)
					for more, k := true, firstInShort(t, 9); more; k += everyInShort(9) {
						s := sweep{T: t, c: c, dir: filepath.Join(dir, fmt.Sprint("k", k)), k: k, fails: fails}
						s.c.Layout = form
						if kind.kind == target.KindS3 {
							s.c.Prefix = fmt.Sprintf("k%d/", k)
						} else {
							s.c.Path = s.dir
						}
						more = s.run()
					}
				})
			}
		}
	}
}

// TestPowerCutAtEachWrite cuts the power of a folder's machine at each write: what was written and not settled is lost, too. What was
// told to be a copy is one all the same.
func TestPowerCutAtEachWrite(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			c, dir := sweptKinds()[0].open(t)
			c.Layout = form
			for more, k := true, firstInShort(t, 4); more; k += everyInShort(4) {
				s := sweep{T: t, c: c, dir: filepath.Join(dir, fmt.Sprint("k", k)), k: k, power: true}
				s.c.Path = s.dir
				more = s.run()
			}
		})
	}
}

func killedAt(t *testing.T, kind swept, form string, k int) (killed bool) {
	t.Run(fmt.Sprint(k), func(t *testing.T) {
		s := sweep{T: t, k: k}
		s.c, s.dir = kind.open(t)
		s.c.Layout = form
		killed = s.run()
	})
	return killed
}

type sweep struct {
	*testing.T
	c   target.Config
	dir string
	k   int

	fails error // of the writes; nil: the engine is killed
	power bool  // is cut: what is not durable is lost
}

// run reports whether the engine was killed at all.
func (s *sweep) run() bool {
	one := targettest.NewBag(s.T, "one", targettest.Now(), map[string]string{"a": "A", "d/b": strings.Repeat("B", 5000)})
	two := targettest.NewBag(s.T, "two", targettest.Now(), map[string]string{"a": "A", "d/c": strings.Repeat("C", 5000)})
	two.Version = 2
	to, stops, err := target.OpenFailing("test", s.c, targettest.Now, s.k, s.fails)
	must(s.T, err)
	first, errOne := to.Put(s.Context(), one)
	second, errTwo := target.Copy{}, target.ErrStopped
	if errOne == nil {
		second, errTwo = to.Put(s.Context(), two)
	}
	errMend := target.ErrStopped
	broken := errTwo == nil && s.damage()
	if broken {
		_, errMend = to.Replace(s.Context(), first, one)
	}
	for _, err := range []error{errOne, errTwo, errMend} {
		if err != nil && !errors.Is(err, target.ErrStopped) && !s.refused(err) {
			s.Fatalf("killed at %d: %v", s.k, err)
		}
	}
	again, ended := to, false
	if s.fails != nil {
		ended = stops.Heal()
		defer func() { must(s.T, to.Close()) }()
	} else {
		ended = stops.Dead()
		must(s.T, to.Close())
		if s.power {
			must(s.T, stops.PowerCut(s.dir))
		}
		again = open(s.T, s.c)
	}
	if errTwo == nil && !broken {
		s.Fatal("nothing was damaged")
	}
	if errOne == nil && !broken && s.c.Layout != target.LayoutOCFL { // an OCFL object may want its inventory finished first
		s.sound(again, first)
	}
	if broken {
		if errMend != nil && !s.kept(again, first) {
			s.Errorf("killed at %d: the damaged bytes are gone, and no sound copy stands there", s.k)
		}
		first, err = again.Replace(s.Context(), first, one)
	} else {
		first, err = again.Put(s.Context(), one)
	}
	if err != nil {
		s.Fatalf("killed at %d: the next engine: %v", s.k, err)
	}
	s.sound(again, first)
	if errTwo == nil {
		s.sound(again, second)
	} else if errOne == nil {
		s.sound(again, first)
	}
	second, err = again.Put(s.Context(), two)
	if err != nil {
		s.Fatalf("killed at %d: the next put of version 2: %v", s.k, err)
	}
	s.sound(again, second)
	for _, name := range s.names() {
		if strings.Contains(name, ".part") || strings.Contains(name, ".damaged") {
			s.Errorf("killed at %d: %s is left", s.k, name)
		}
	}
	return ended
}

// refused reports whether an error is that of a store that took no more.
func (s *sweep) refused(err error) bool {
	var down *target.Down
	var wrong *target.Damage
	return s.fails != nil && (errors.As(err, &down) || s.fails == syscall.EIO && errors.As(err, &wrong))
}

func (s *sweep) sound(to target.Target, c target.Copy) {
	s.Helper()
	if _, _, err := to.Check(s.Context(), c, target.Read); err != nil {
		s.Errorf("killed at %d: version at %s: %v", s.k, c.Place, err)
	}
}

// kept reports whether the damaged bytes are there still, or a sound copy.
func (s *sweep) kept(to target.Target, c target.Copy) bool {
	if _, _, err := to.Check(s.Context(), c, target.Read); err == nil {
		return true
	}
	for _, name := range s.names() {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		must(s.T, err)
		if bytes.Contains(data, []byte("BBBBC")) {
			return true
		}
	}
	return false
}

// damage flips a byte in the middle of version 1's payload, of Bs a C.
func (s *sweep) damage() bool {
	for _, name := range s.names() {
		path := filepath.Join(s.dir, name)
		data, err := os.ReadFile(path)
		must(s.T, err)
		at := bytes.Index(data, bytes.Repeat([]byte("B"), 5000))
		if at < 0 {
			continue
		}
		data[at+2500] = 'C'
		must(s.T, os.Chmod(path, 0o644), os.WriteFile(path, data, 0o644))
		return true
	}
	return false
}

// names lists the files that stand there.
func (s *sweep) names() (all []string) {
	err := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, strings.TrimPrefix(p, s.dir))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	slices.Sort(all)
	return all
}
