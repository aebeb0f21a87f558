package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/layout/disk"
)

// catalogued is a folder with what catalogs find: files, folders, an archive, a bag and a link.
func (b *bench) catalogued() (root string) {
	root = filepath.Join(b.top, "scans")
	for _, name := range []string{"a/1.txt", "a/2.txt", "a/deep/er/3.txt", "b/4.txt", "bag/data/x"} {
		b.must(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777))
		b.write("scans/"+name, name)
	}
	b.write("scans/bag/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	b.write("scans/bag/manifest-sha256.txt", fmt.Sprintf("%x  data/x\n", sha256.Sum256([]byte("bag/data/x"))))
	b.must(os.Symlink("a", filepath.Join(root, "link")))
	if out, err := exec.Command("tar", "-czf", filepath.Join(root, "b/p.tgz"), "-C", root, "a").CombinedOutput(); err != nil {
		b.t.Fatalf("%s", out)
	}
	return root
}

// stateOf is every byte, mode and time below a folder.
func (b *bench) stateOf(root string) string {
	var out strings.Builder
	b.must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, _ := os.ReadFile(path)
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&out, path, info.Mode(), info.ModTime(), st.Ctim, st.Uid, string(data))
		return nil
	}))
	return out.String()
}

var itemColumn = regexp.MustCompile(`(?m)^(ITEM|-|[0-9a-f]{8}) +`)

// A catalog that cannot be written to gives the same answers as one that can, its steps are
// done, and below the root all is as it was; a folder that is mounted in itself is not entered.
func TestCatalogOnAReadOnlyMount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := b.catalogued()
	b.ok("catalog", "add", "scans", root)
	b.ok("catalog", "scan")
	want := itemColumn.ReplaceAllString(b.ok("catalog", "list", "scans", "--all"), "")
	before := b.stateOf(root)

	mounted, other := filepath.Join(b.top, "mounted"), filepath.Join(b.top, "other")
	b.must(os.Mkdir(mounted, 0o777))
	b.mount(root, mounted, "--bind")
	b.mount(mounted, mounted, "-o", "remount,bind,ro")
	if err := os.WriteFile(filepath.Join(mounted, "x"), nil, 0o666); err == nil {
		t.Skip("what is mounted for reading can be written to")
	}
	b.ok("init", other)
	b.ok("-C", other, "catalog", "add", "scans", mounted)
	b.ok("-C", other, "catalog", "scan")
	if got := itemColumn.ReplaceAllString(b.ok("-C", other, "catalog", "list", "scans", "--all"), ""); got != want {
		t.Errorf("mounted for reading:\n%sexpected:\n%s", got, want)
	}
	b.ok("-C", other, "run", "-q")
	if after := b.stateOf(root); after != before {
		t.Errorf("below the root:\n%sbefore:\n%s", after, before)
	}

	loop := filepath.Join(root, "a", "deep")
	b.mount(root, loop, "--bind")
	if out := b.start("catalog", "scan").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "another file system is mounted there") {
		t.Errorf("a folder that is mounted in itself: %s", out)
	}
	b.unmount(loop)
	if out := b.ok("catalog", "scan"); !strings.Contains(out, "new: 0, versions: 0, moved: 0, gone: 0") {
		t.Errorf("unmounted again: %s", out)
	}
}

// A catalog of another owner gives the same answers. What the owner forbids to list, or to look
// into, is unread, and nothing there is gone.
func TestCatalogOfAnotherOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := b.catalogued()
	b.ok("catalog", "add", "scans", root)
	var credential *syscall.Credential
	if os.Getuid() == 0 {
		credential = b.withoutWriting()
		b.must(filepath.WalkDir(b.dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, int(credential.Uid), int(credential.Gid))
		}))
	}
	scan := func(code screen.Exit, args ...string) string {
		t.Helper()
		p := &process{b: b, cmd: exec.Command("bagpipe", append([]string{"-C", b.dir, "catalog"}, args...)...), end: make(chan struct{})}
		p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = b.env, &p.out, &p.out
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		b.must(p.cmd.Start())
		p.err = p.cmd.Wait()
		close(p.end)
		return p.code(int(code))
	}
	scan(0, "scan")
	known := scan(0, "list", "scans", "--all")
	if !strings.Contains(known, "a/deep/er/3.txt") || !strings.Contains(known, "bag/data/x") {
		t.Fatalf("known: %s", known)
	}
	before := b.stateOf(root)
	for path, mode := range map[string]fs.FileMode{"a": 0o444, "b": 0, "bag": 0o111} {
		b.must(os.Chmod(filepath.Join(root, path), mode))
	}
	out := scan(screen.ExitSomeFailed, "scan", "--accept-gone")
	for _, want := range []string{"gone: 0", "  a: an entry could not be looked at: permission denied", "  b: permission denied", "  bag: permission denied"} {
		if !strings.Contains(out, want) {
			t.Errorf("not told: %s\n%s", want, out)
		}
	}
	for _, path := range []string{"a", "b", "bag"} {
		b.must(os.Chmod(filepath.Join(root, path), 0o777&^umask(t)))
	}
	if out := scan(0, "scan"); !strings.Contains(out, "new: 0, versions: 0, moved: 0, gone: 0") {
		t.Errorf("allowed again: %s", out)
	}
	if now := scan(0, "list", "scans", "--all"); now != known {
		t.Errorf("known:\n%sbefore:\n%s", now, known)
	}
	if after := b.stateOf(filepath.Join(root, "bag", "data")); !strings.Contains(before, after) {
		t.Errorf("below the root:\n%sbefore:\n%s", after, before)
	}
}

func umask(t *testing.T) fs.FileMode {
	dir := filepath.Join(t.TempDir(), "d")
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return 0o777 &^ info.Mode().Perm()
}
