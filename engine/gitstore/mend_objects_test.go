package gitstore_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore"
)

// A byte is flipped in each of fifty packs: a repair from a copy makes the repository whole, and
// without one leaves it as it is.
func TestFiftyDamagedPacksAreMended(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	o := gitstore.Options{Now: time.Now}
	if err := gitstore.Init(ctx, root, o, map[string][]byte{"a": []byte("a\n")}, "init\n", gitstore.Signature{}); err != nil {
		t.Fatal(err)
	}
	s, err := gitstore.Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 49 {
		_, err := s.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
			return &gitstore.Change{Files: map[string][]byte{fmt.Sprintf("dir/%d/file", i%7): fmt.Appendf(nil, "content %d\n", i)}, Message: fmt.Sprintf("commit %d\n", i)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(root, ".git")
	say := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"--git-dir=" + git}, args...)...).CombinedOutput()
		return string(out), err
	}
	clone := filepath.Join(t.TempDir(), "copy.git")
	if out, err := exec.Command("git", "clone", "-q", "--mirror", "--no-hardlinks", root, clone).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	packs, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack"))
	if err != nil || len(packs) < 40 {
		t.Fatalf("%d packs, %v", len(packs), err)
	}
	r := rand.New(rand.NewSource(1))
	for _, p := range packs {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		data[r.Intn(len(data))] ^= byte(1 + r.Intn(255))
		if err := os.Chmod(p, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Missing) == 0 {
		t.Fatalf("without a copy: %+v, %v", m, err)
	}
	if left, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack")); err != nil || len(left) < len(packs) {
		t.Fatalf("a damaged pack went though something is missing: %d of %d, %v", len(left), len(packs), err)
	}
	m, err := gitstore.MendObjects(ctx, root, []string{clone}, nil)
	if err != nil || len(m.Missing) > 0 || len(m.Packs) != len(packs) {
		t.Fatalf("mended %+v, %v", m, err)
	}
	if out, err := say("fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || out != "" {
		t.Errorf("fsck: %v\n%s", err, out)
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Packs)+m.Loose+m.Found+len(m.Missing) > 0 {
		t.Errorf("again: %+v, %v", m, err)
	}
}

// A damaged index names objects that no pack ever had: that of a sound pack is made anew, without a copy; of one that is
// damaged as well nothing is believed.
func TestADamagedIndexIsMadeAnew(t *testing.T) {
	ctx := context.Background()
	root, o := filepath.Join(t.TempDir(), "w"), gitstore.Options{Now: time.Now}
	if err := gitstore.Init(ctx, root, o, map[string][]byte{"a": []byte("a\n"), "b": []byte("b\n")}, "init\n", gitstore.Signature{}); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(root, ".git")
	fsck := func() {
		t.Helper()
		if out, err := exec.Command("git", "--git-dir="+git, "fsck", "--strict", "--no-dangling", "--no-progress").CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("fsck: %v\n%s", err, out)
		}
	}
	clone := filepath.Join(t.TempDir(), "copy.git")
	if out, err := exec.Command("git", "clone", "-q", "--mirror", "--no-hardlinks", root, clone).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	all, err := filepath.Glob(filepath.Join(git, "objects/pack/*.idx"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	flip := func(name string, at int) {
		t.Helper()
		data, err := os.ReadFile(name)
		if err == nil {
			data[at] ^= 0x55
			err = errors.Join(os.Chmod(name, 0o644), os.WriteFile(name, data, 0o444))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const firstName = 8 + 256*4 + 10 // a byte within the first object's
	flip(all[0], firstName)
	m, err := gitstore.MendObjects(ctx, root, nil, nil)
	if err != nil || len(m.Missing)+len(m.Packs)+m.Found > 0 || !slices.Equal(m.Indexes, []string{filepath.Base(all[0])}) {
		t.Errorf("mended %+v, %v", m, err)
	}
	fsck()
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Indexes)+len(m.Packs) > 0 {
		t.Errorf("again: %+v, %v", m, err)
	}
	flip(all[0], firstName)
	flip(strings.TrimSuffix(all[0], ".idx")+".pack", 20)
	if m, err = gitstore.MendObjects(ctx, root, []string{clone}, nil); err != nil || len(m.Missing)+len(m.Indexes) > 0 || len(m.Packs) != 1 {
		t.Errorf("both damaged: %+v, %v", m, err)
	}
	fsck()
}

// A repair that was killed while packs were out of Git's sight is gone on with, and a damaged object is had from a copy
// of the file beside it.
func TestARepairGoesOnAndTakesCopies(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	o := gitstore.Options{Now: time.Now}
	content := []byte("a letter\n")
	if err := gitstore.Init(ctx, root, o, map[string][]byte{"a": content}, "init\n", gitstore.Signature{}); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(root, ".git")
	say := func(in []byte, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir=" + git}, args...)...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	say(nil, "repack", "-adq")
	packs, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	base := strings.TrimSuffix(packs[0], ".pack")
	if err := errors.Join(os.Rename(base+".idx", base+".mending"), os.Mkdir(filepath.Join(git, "mending-1"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Missing)+len(m.Packs) > 0 {
		t.Fatalf("after a repair that was killed: %+v, %v", m, err)
	}
	if out := say(nil, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Fatal(out)
	}

	pack, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(packs[0]), os.Remove(base+".idx")); err != nil {
		t.Fatal(err)
	}
	say(pack, "unpack-objects", "-q")
	name := say(content, "hash-object", "--stdin")
	loose := filepath.Join(git, "objects", name[:2], name[2:])
	if err := errors.Join(os.Chmod(loose, 0o644), os.WriteFile(loose, []byte("torn"), 0o644)); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(copied, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, func(yield func(string) bool) { yield(copied) }); err != nil || m.Loose != 1 || m.Found != 1 || len(m.Missing) > 0 {
		t.Errorf("from a copy: %+v, %v", m, err)
	}
	if out := say(nil, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Error(out)
	}
}

// Two loose files of one SHA-1 sum (the "shattered" ones, of sha1cd's own tests) are neither sound nor taken
// for one another.
func TestTwoFilesOfOneDigestAreNotSound(t *testing.T) {
	where, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/pjbgf/sha1cd").Output()
	if err != nil {
		t.Skip("no source of the module sha1cd")
	}
	const name = "38762cf7f55934b34d179ae6a4c80cadccbb7f0a"
	made := func(file string) (root, path string) {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(where)), "test", "testdata", "files", file))
		if err != nil {
			t.Skip("the module sha1cd came without its tests: ", err)
		}
		if sum := sha1.Sum(data); hex.EncodeToString(sum[:]) != name {
			t.Fatalf("%s has digest %x", file, sum)
		}
		root = filepath.Join(t.TempDir(), "w")
		if err := gitstore.Init(context.Background(), root, gitstore.Options{Now: time.Now}, map[string][]byte{"a": []byte("a\n")}, "init\n", gitstore.Signature{}); err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(root, ".git", "objects", name[:2], name[2:])
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		_, err = w.Write(data)
		if err := errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, packed.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return root, path
	}
	root, path := made("shattered-1.pdf")
	other, _ := made("shattered-2.pdf")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gitstore.MendObjects(context.Background(), root, []string{other}, nil)
	if err != nil || !slices.Equal(m.Missing, []string{name}) || m.Loose+m.Found > 0 {
		t.Errorf("mended %+v, %v", m, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was replaced: %v", err)
	}
	s, err := gitstore.Open(root, gitstore.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	scanning := gitstore.NewScanning(s, true)
	defer scanning.Close()
	if err := scanning.Rest(context.Background()); !gitstore.Unfit(err) {
		t.Errorf("an audit finds %v", err)
	}
	if said, err := gitstore.Fsck(context.Background(), root, gitstore.Hash{}, gitstore.Hash{}); err != nil || len(said) == 0 {
		t.Errorf("git says %q, %v", said, err)
	}
}
