package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
)

// A store on a real mount: with the file system gone, nothing is written into the mount
// point, and with it back the deposit is made.
func TestStoreNotMounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	disk := filepath.Join(b.top, "disk")
	b.must(os.Mkdir(disk, 0o777))
	b.mount("tmpfs", disk, "-t", "tmpfs", "-o", "size=256m")
	b.must(edit(filepath.Join(b.dir, "bagpipe.yaml"), "store: store", "store: "+disk+"/store"))
	b.write("one.txt", "one")
	b.write("two.txt", "two")
	b.ok("add", filepath.Join(b.top, "one.txt"))
	b.ok("run")

	shelf := filepath.Join(b.top, "shelf")
	b.must(os.Mkdir(shelf, 0o777))
	b.mount(disk, shelf, "--bind") // keeps the file system while the store is not mounted
	b.unmount(disk)
	b.ok("add", filepath.Join(b.top, "two.txt"))
	if out := b.start("run").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "is it mounted?") {
		t.Errorf("run without the store: %s", out)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("in the mount point: %v, %v", left, err)
	}
	b.mount(shelf, disk, "--bind")
	b.ok("step", "retry", "two.txt", "deposit")
	b.ok("run")
	if bags, err := filepath.Glob(filepath.Join(shelf, "store/*/*/*/*/*")); err != nil || len(bags) != 2 {
		t.Errorf("in the store: %v, %v", bags, err)
	}
}

// A store on a file system that is full is waited for; what it kept is whole, and with room
// the deposit is made.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	disk := filepath.Join(b.top, "disk")
	b.must(os.Mkdir(disk, 0o777))
	b.mount("tmpfs", disk, "-t", "tmpfs", "-o", "size=72m")
	b.must(edit(filepath.Join(b.dir, "bagpipe.yaml"), "store: store", "store: "+disk+"/store"))
	b.write("small.txt", "small")
	b.write("large.bin", strings.Repeat("0123456789abcdef", 1<<20))
	b.write("other.bin", strings.Repeat("0123456789abcdee", 1<<20))
	b.ok("add", filepath.Join(b.top, "small.txt"), filepath.Join(b.top, "large.bin"), filepath.Join(b.top, "other.bin"))
	if out := b.start("run").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "Tried again later:") || !strings.Contains(out, "no space in the store") || !strings.Contains(out, "MiB are kept free") || !strings.Contains(out, "deposit: 2 items since") {
		t.Errorf("run with a full store: %s", out)
	}
	stored := func() []string {
		bags, err := filepath.Glob(filepath.Join(disk, "store/*/*/*/*/*"))
		b.must(err)
		return bags
	}
	if n := len(stored()); n != 1 {
		t.Errorf("%d bags in the store, want that of small.txt", n)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=256m", disk).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	b.ok("step", "retry", "large.bin", "deposit")
	b.ok("step", "retry", "other.bin", "deposit")
	b.ok("run")
	for _, bag := range stored() {
		b.ok("bag", "validate", bag)
	}
	if n := len(stored()); n != 3 {
		t.Errorf("%d bags in the store", n)
	}
}

// A folder of targets: on a file system that is full has one line for all items that wait for it, and each item names it.
func TestTargetFull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	disk := filepath.Join(b.top, "disk")
	b.must(os.Mkdir(disk, 0o777))
	b.mount("tmpfs", disk, "-t", "tmpfs", "-o", "size=1m")
	b.write("disk/bagpipe-store.json", "")
	b.write("ws/bagpipe.yaml", "schema: 1\ntargets:\n  vault: {kind: folder, path: ../disk}\ndefaults: {workflow: accession, targets: [vault]}\n")
	for _, name := range []string{"one.bin", "two.bin", "three.bin"} {
		b.write(name, name+strings.Repeat("0123456789abcdef", 1<<17))
		b.ok("add", filepath.Join(b.top, name))
	}
	waits := "deposit: 3 items since"
	if out := b.start("run", "-q").code(int(screen.ExitSomeFailed)); strings.Count(out, "no space left on device") != 1 || !strings.Contains(out, waits) {
		t.Errorf("run with a full target: %s", out)
	}
	if out := b.ok("status"); strings.Count(out, "no space left on device") != 1 || !strings.Contains(out, waits) {
		t.Errorf("status with a full target: %s", out)
	}
	if out := b.ok("why", "two.bin"); !strings.Contains(out, "target vault: ") || !strings.Contains(out, "no space left on device") {
		t.Errorf("why: %s", out)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=64m", disk).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	for _, name := range []string{"one.bin", "two.bin", "three.bin"} {
		b.ok("step", "retry", name, "deposit")
	}
	b.ok("run")
	if out := b.ok("status"); strings.Contains(out, "no space") {
		t.Errorf("with room: %s", out)
	}
}

// A store on a disk of its own, a loop device, that is full and then gone: neither fails an item or leaves anything in the mount
// point, and with the disk back and room on it the deposit is made.
func TestStoreOnALoopDevice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	disk, image := filepath.Join(b.top, "disk"), filepath.Join(b.top, "image")
	b.must(errors.Join(os.Mkdir(disk, 0o777), os.WriteFile(image, nil, 0o666), os.Truncate(image, 256<<20)))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("no mkfs.ext4: %v %s", err, out)
	}
	b.mount(image, disk, "-o", "loop")
	b.must(edit(filepath.Join(b.dir, "bagpipe.yaml"), "store: store", "store: "+disk+"/store"))
	var fs syscall.Statfs_t
	b.must(syscall.Statfs(disk, &fs))
	filler, err := os.Create(filepath.Join(disk, "filler"))
	b.must(err)
	b.must(errors.Join(syscall.Fallocate(int(filler.Fd()), 0, 0, int64(fs.Bavail)*fs.Bsize-70<<20), filler.Close()))
	b.write("small.txt", "small")
	b.write("large.bin", strings.Repeat("0123456789abcdef", 1<<20))
	b.ok("add", filepath.Join(b.top, "small.txt"), filepath.Join(b.top, "large.bin"))
	if out := b.start("run").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "no space in the store") {
		t.Errorf("run with a full disk: %s", out)
	}

	b.unmount(disk)
	b.ok("step", "retry", "large.bin", "deposit")
	if out := b.start("run").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "is it mounted?") {
		t.Errorf("run without the disk: %s", out)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("in the mount point: %v, %v", left, err)
	}

	b.mount(image, disk, "-o", "loop")
	b.must(os.Remove(filler.Name()))
	b.ok("step", "retry", "large.bin", "deposit")
	b.ok("run")
	bags, err := filepath.Glob(filepath.Join(disk, "store/*/*/*/*/*"))
	if err != nil || len(bags) != 2 {
		t.Errorf("in the store: %v, %v", bags, err)
	}
	for _, bag := range bags {
		b.ok("bag", "validate", bag)
	}
}

// A file whose length fetch.txt does not say does not fill the file system: what came is kept, and
// with room the next call goes on.
func TestFetchLeavesRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	disk, shelf := filepath.Join(b.top, "disk"), filepath.Join(b.top, "shelf")
	b.must(errors.Join(os.Mkdir(disk, 0o777), os.Mkdir(shelf, 0o777), os.Mkdir(filepath.Join(b.top, "bag"), 0o777)))
	b.write("bag/film.mov", strings.Repeat("0123456789abcdef", 3<<20)) // 48 MiB
	b.ok("bag", "create", "--in-place", filepath.Join(b.top, "bag"))
	b.must(os.Rename(filepath.Join(b.top, "bag/data/film.mov"), filepath.Join(shelf, "film.mov")))
	b.mount("tmpfs", disk, "-t", "tmpfs", "-o", "size=96m")
	bag := filepath.Join(disk, "bag")
	b.must(os.CopyFS(bag, os.DirFS(filepath.Join(b.top, "bag"))))
	b.must(os.WriteFile(filepath.Join(bag, "fetch.txt"), []byte("file://"+shelf+"/film.mov - data/film.mov\n"), 0o666))
	out := b.start("bag", "fetch", bag, "--allow-folder", shelf).code(int(screen.ExitError))
	if !strings.Contains(out, "no room: ") {
		t.Errorf("fetch into 96 MiB: %s", out)
	}
	var fs syscall.Statfs_t
	b.must(syscall.Statfs(disk, &fs))
	if free := int64(fs.Bavail) * fs.Bsize; free < 48<<20 {
		t.Errorf("%d bytes are left free", free)
	}
	b.ok("bag", "fetch", bag, "--allow-folder", shelf, "--free", "16MiB")
	b.ok("bag", "validate", bag)
}

// mount mounts for the length of the test, which is skipped where that is not allowed.
func (b *bench) mount(what, dir string, how ...string) {
	b.t.Helper()
	if out, err := exec.Command("mount", append(how, what, dir)...).CombinedOutput(); err != nil {
		b.t.Skipf("no right to mount: %s", out)
	}
	b.t.Cleanup(func() { _ = exec.Command("umount", dir).Run() }) // gone already where the test unmounted it
}

func (b *bench) unmount(dir string) {
	b.t.Helper()
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		b.t.Fatalf("umount %s: %s", dir, out)
	}
}

// Where no claim finds room, though space is free, it is told once and waited for.
func TestNoRoomForClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("w", "  - name: one\n    command: ['true']\n")
	b.addItems("w", 30)
	claims := filepath.Join(b.dir, ".bagpipe/claims")
	b.must(os.MkdirAll(claims, 0o777))
	b.mount("tmpfs", claims, "-t", "tmpfs", "-o", "nr_inodes=1")
	service := b.start("run", "--watch", "-q")
	time.Sleep(3 * time.Second)
	if out, err := exec.Command("mount", "-o", "remount,nr_inodes=1000", claims).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.await("all of it done", func() bool { return len(b.labels("completed")) == 30 })
	service.signal(syscall.SIGTERM)
	out := service.code(0)
	if lines := strings.Count(out, "\n"); lines > 6 {
		t.Errorf("%d lines were said:\n%.2000s", lines, out)
	}
	b.unmount(claims)
	b.write("in/one-run", "x")
	b.mount("tmpfs", claims, "-t", "tmpfs", "-o", "nr_inodes=1")
	b.ok("add", "--workflow", "w", filepath.Join(b.top, "in/one-run"))
	if out := b.start("run").code(1); !strings.Contains(out, "no space left for") {
		t.Errorf("%s", out)
	}
}

// A target's folder on a file system that is full holds no item by halves, and with room it holds all.
func TestDeliveryToAFullTarget(t *testing.T) {
	t.Parallel()
	b := deliveryBase(t)
	portal := filepath.Join(b.top, "portal")
	b.mount("tmpfs", portal, "-t", "tmpfs", "-o", "size=256k")
	b.write("ws/rules/portal.yaml", deliveryRules("metadata.year > 1900"))
	b.ok("delivery", "republish") // the rule is younger than its items
	b.ok("run", "-q")             // beside the large one, either of these could find no room for its record
	large := strings.Repeat("0123456789abcdef", 1<<16)
	b.write("ws/inbox/default/map-2001/sheet.txt", large)
	b.write("ws/inbox/default/map-2001/metadata.json", `{"year": 2001}`)
	if out := b.start("run", "-q").code(int(screen.ExitSomeFailed)); !strings.Contains(out, "no space left on device") {
		t.Errorf("run with a full target: %s", out)
	}
	holds := func() (sizes []int64, left []string) {
		b.must(filepath.WalkDir(portal, func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".part") {
				left = append(left, p)
			}
			if err != nil || d.Name() != "sheet.txt" {
				return err
			}
			info, err := d.Info()
			sizes = append(sizes, info.Size())
			return err
		}))
		slices.Sort(sizes)
		return sizes, left
	}
	if sizes, left := holds(); !slices.Equal(sizes, []int64{4, 4}) || len(left) > 0 {
		t.Errorf("the full target holds sheets of %v bytes, and %v", sizes, left)
	}
	if out := b.ok("delivery", "list", "--to", "portal", "--state", "ready"); !strings.Contains(out, "map-2001") {
		t.Errorf("what found no room: %s", out)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=8m", portal).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	b.ok("delivery", "retry", "map-2001", "--to", "portal")
	b.ok("run", "-q")
	if sizes, left := holds(); !slices.Equal(sizes, []int64{4, 4, int64(len(large))}) || len(left) > 0 {
		t.Errorf("with room it holds sheets of %v bytes, and %v", sizes, left)
	}
}
