package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"
)

// The power fails in the middle of runs of the shipped workflow, on an ext4 of its own: what was not synced is gone, as
// the kernel has it. All that a run or an add had told stands in the history, no synced drop is lost or comes twice, and
// the next run brings each to a deposit of the bytes that were dropped.
func TestMainJobPowerCut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := &cutDisk{b, filepath.Join(b.top, "image"), filepath.Join(b.top, "disk")}
	d.make()
	b.dir = filepath.Join(d.dir, "ws")
	b.ok("init", b.dir)
	b.must(hasten(b.dir))
	b.ok("status") // commits the settings
	var kept []string
	for round := range soak(2, 60) {
		var drops []string
		for i := range 8 {
			name := fmt.Sprintf("drop-%d-%d", round, i)
			b.write("disk/stage/"+name+"/file.txt", name)
			b.must(os.Rename(filepath.Join(d.dir, "stage", name), filepath.Join(b.dir, "inbox/default", name)))
			drops = append(drops, name)
		}
		d.sync()
		runs := []*process{b.start("run", "-j", "4"), b.start("run", "-j", "2")}
		adds, after := map[string]*process{}, time.After(time.Duration(20+rand.IntN(700))*time.Millisecond)
	adding:
		for i := range 4 {
			name := fmt.Sprintf("added-%d-%d", round, i)
			b.write(name+"/file.txt", name)
			adds[name] = b.start("add", filepath.Join(b.top, name))
			select {
			case <-after:
				after = nil
				break adding
			case <-adds[name].end:
			}
		}
		if after != nil {
			<-after
		}
		d.cut()
		for _, p := range runs {
			p.kill()
		}
		var told []string
		for name, p := range adds {
			p.kill()
			if p.err == nil {
				drops = append(drops, name)
			}
		}
		for _, p := range runs {
			told = append(told, toldBy(p.out.String())...)
		}
		d.back()

		b.git("fsck", "--strict", "--no-dangling")
		stands := map[string]bool{}
		for line := range strings.Lines(b.git("log", "--format=%(trailers:key=Bagpipe-Item,valueonly,separator=) %(trailers:key=Bagpipe-Step,valueonly,separator=) %(trailers:key=Bagpipe-To,valueonly,separator=)")) {
			if f := strings.Fields(line); len(f) == 3 {
				stands[f[0][:8]+" "+f[1]+" "+f[2]] = true
			}
		}
		for _, line := range told {
			if !stands[line] {
				t.Errorf("round %d: a run told of %q, and the history knows nothing of it", round, line)
			}
		}
		b.ok("run", "-q")
		kept = append(kept, drops...)
		done := b.labels("completed")
		for _, name := range kept {
			if n := len(slices.DeleteFunc(slices.Clone(done), func(l string) bool { return l != name })); n != 1 {
				t.Errorf("round %d: %s is there %d times: %s", round, name, n, b.start("why", name).code(0))
			}
		}
		for _, item := range gjson.Get(b.ok("items", "--json"), "@this").Array() {
			label := item.Get("label").String()
			found, err := filepath.Glob(filepath.Join(b.dir, "store/?/?/?/?", item.Get("item").String(), "data", "file.txt"))
			b.must(err)
			if len(found) != 1 {
				t.Fatalf("round %d: %s: %v", round, label, found)
			}
			if data, err := os.ReadFile(found[0]); err != nil || string(data) != label {
				t.Errorf("round %d: %s holds %q: %v", round, found[0], data, err)
			}
		}
		t.Logf("round %d: %d transitions were told before the power failed", round, len(told))
		if t.Failed() {
			return
		}
	}
	b.await("nothing left behind", func() bool { b.ok("run", "-q"); return leftBehind(b.dir) == nil })
	n := len(b.labels("completed"))
	b.atRest(n)
	b.deposits(n)
}

// toldBy are the transitions that a run told of: what of an item's identifier it shows, the step, and how it stands.
func toldBy(out string) (lines []string) {
	for _, m := range toldLine.FindAllStringSubmatch(out, -1) {
		to, step := m[1], m[3]
		if to == "registered" {
			to, step = "completed", "register"
		}
		lines = append(lines, m[2]+" "+step+" "+to)
	}
	return lines
}

var toldLine = regexp.MustCompile(`(?m)^(registered|completed|skipped|failed) +([0-9a-f]{8}) +(?:\S+/)(\S+)`)

// cutDisk is an ext4 in a file, whose power can fail.
type cutDisk struct {
	b          *bench
	image, dir string
}

func (d *cutDisk) make() {
	d.b.t.Helper()
	d.b.must(os.WriteFile(d.image, nil, 0o666))
	d.b.must(os.Truncate(d.image, 1<<30))
	d.b.must(os.Mkdir(d.dir, 0o777))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", d.image).CombinedOutput(); err != nil {
		d.b.t.Skipf("no mkfs.ext4: %v %s", err, out)
	}
	d.b.mount(d.image, d.dir, "-o", "loop")
}

func (d *cutDisk) sync() {
	d.b.t.Helper()
	f, err := os.Open(d.dir)
	d.b.must(err)
	d.b.must(unix.Syncfs(int(f.Fd())))
	d.b.must(f.Close())
}

// cut stops the file system where it is: nothing more of it is written, not its journal either.
func (d *cutDisk) cut() {
	d.b.t.Helper()
	f, err := os.Open(d.dir)
	d.b.must(err)
	const shutdown, noFlush = 0x8004587d, 2 // FS_IOC_SHUTDOWN, FS_SHUTDOWN_FLAGS_NOLOGFLUSH
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noFlush); err != nil {
		d.b.t.Skipf("this file system cannot be stopped: %v", err)
	}
	d.b.must(f.Close())
}

// back mounts it again, as after the power came back.
func (d *cutDisk) back() {
	d.b.t.Helper()
	d.b.unmount(d.dir)
	d.b.mount(d.image, d.dir, "-o", "loop")
}
