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
	"time"

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

// A folder that the disk does not give, by whatever word, is told of with the catalog, and all else is catalogued.
func TestCatalogOnADamagedDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := b.catalogued()
	b.ok("catalog", "add", "scans", root)
	code, out := b.injectedAt(filepath.Join(root, "b"), "openat,getdents64,newfstatat,statx", "error=EUCLEAN", "catalog", "scan")
	if code != int(screen.ExitSomeFailed) || !strings.Contains(out, "structure needs cleaning") {
		t.Errorf("a scan over a damaged folder ends with %d: %s", code, out)
	}
	if listed := b.ok("catalog", "list", "scans"); !strings.Contains(listed, "a/1.txt") || !strings.Contains(listed, "unread") {
		t.Errorf("what is not damaged is not catalogued:\n%s", listed)
	}
}

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
	// A file of an item that may not be read waits, told by each scan, until it may be; then its item says what the rules say now.
	b.write("ws/rules/x.yaml", "schema: 1\nname: x\nrules:\n  - {name: one, match: {kind: file, name: 1.txt}, type: page}\n")
	b.must(os.Chmod(filepath.Join(root, "a/1.txt"), 0))
	for range 2 {
		if out := scan(screen.ExitSomeFailed, "scan"); !strings.Contains(out, "  a/1.txt: ") || !strings.Contains(out, "permission denied") {
			t.Errorf("not told: %s", out)
		}
		if out := scan(0, "list", "scans"); !regexp.MustCompile(`[0-9a-f]{8} +file +yes +unread +a/1.txt\n`).MatchString(out) {
			t.Errorf("listed: %s", out)
		}
	}
	if out := scan(0, "status"); !strings.Contains(out, "scans: 1 entry could not be looked into; ") {
		t.Errorf("status: %s", out)
	}
	b.must(os.Chmod(filepath.Join(root, "a/1.txt"), 0o666&^umask(t)))
	if out := scan(0, "scan"); !strings.Contains(out, "new: 0, versions: 0, moved: 0, gone: 0") {
		t.Errorf("may be read again: %s", out)
	}
	if out := b.ok("items", "--where", "type = page"); !strings.Contains(out, "1.txt") {
		t.Errorf("described: %s", out)
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

// The file system of a catalog goes and comes while it is scanned, and scans are killed; another one is mounted in its
// place. Nothing is gone by that, nothing is new, and each change is one version.
func TestCatalogUnmountedDuringScans(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shelf, root := filepath.Join(b.top, "shelf"), filepath.Join(b.top, "root")
	for _, dir := range []string{shelf, root} {
		b.must(os.Mkdir(dir, 0o777))
	}
	b.mount("tmpfs", shelf, "-t", "tmpfs", "-o", "size=64m")
	const files = 200
	write := func(n int, text string) {
		b.must(os.MkdirAll(filepath.Join(shelf, fmt.Sprint(n%20)), 0o777))
		b.write(fmt.Sprintf("shelf/%d/%d.txt", n%20, n), text)
	}
	for n := range files {
		write(n, fmt.Sprint("one ", n))
	}
	b.mount(shelf, root, "--bind")
	b.ok("catalog", "add", "c", root)
	known, err := os.ReadFile(filepath.Join(b.dir, "catalogs/c.yaml"))
	b.must(err)
	b.write("ws/catalogs/c.yaml", string(known)+"gone: 100%\n") // nobody is asked
	b.ok("catalog", "scan", "-q")
	first := b.itemsAt(files)
	changes := soak(6, 60)
	for n := range changes {
		write(n, fmt.Sprint("another ", n))
		p := b.start("catalog", "scan", "-q")
		<-time.After(time.Duration(n%6) * 15 * time.Millisecond)
		if out, err := exec.Command("umount", "-l", root).CombinedOutput(); err != nil { // lazily, as a scan holds it
			t.Fatalf("%s", out)
		}
		if n%2 == 0 {
			p.kill()
		}
		<-p.end
		if out := b.start("catalog", "scan").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "c: away: its root is on another file system than it was") {
			t.Errorf("without its file system: %s", out)
		}
		b.mount(shelf, root, "--bind")
	}
	b.unmount(root)
	b.mount("tmpfs", root, "-t", "tmpfs", "-o", "size=1m")
	b.write("root/other.txt", "of another disk")
	if out := b.start("catalog", "scan").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "c: away: its root is on another file system than it was") {
		t.Errorf("with another file system: %s", out)
	}
	b.unmount(root)
	b.mount(shelf, root, "--bind")
	b.ok("catalog", "scan", "-q")
	for path, item := range b.itemsAt(files) {
		if first[path] != item {
			t.Errorf("%s is item %s, and was %s", path, item, first[path])
		}
	}
	if n := strings.Count(b.git("log", "--format=%B"), "\nBagpipe-Version: 2\n"); n != changes {
		t.Errorf("%d second versions of %d changes", n, changes)
	}
	b.git("fsck", "--strict", "--no-dangling")
}

// A catalog's root that shows the workspace by a mount is refused, by whichever of the two paths the workspace is opened.
func TestCatalogThatShowsItsWorkspace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	real, shown := filepath.Join(b.top, "real"), filepath.Join(b.top, "shown")
	b.must(os.MkdirAll(filepath.Join(real, "a/b"), 0o777))
	b.must(os.Mkdir(shown, 0o777))
	b.write("real/a/1.txt", "one")
	ws := filepath.Join(real, "a/b/ws")
	b.ok("init", ws)
	b.mount(filepath.Join(real, "a"), shown, "--bind")
	if out := b.start("-C", ws, "catalog", "add", "c", shown).code(1); !strings.Contains(out, "shown and the workspace lie in one another") {
		t.Errorf("added above the workspace: %s", out)
	}
	if out := b.start("-C", ws, "catalog", "add", "c", filepath.Join(shown, "b/ws/items")).code(1); !strings.Contains(out, "and the workspace lie in one another") {
		t.Errorf("added in the workspace: %s", out)
	}
	b.unmount(shown)
	b.mount(ws, shown, "--bind")
	for _, root := range []string{real, filepath.Join(ws, "inbox/default")} {
		if out := b.start("-C", shown, "catalog", "add", "c", root).code(1); !strings.Contains(out, "and the workspace lie in one another") {
			t.Errorf("added %s: %s", root, out)
		}
	}
}
