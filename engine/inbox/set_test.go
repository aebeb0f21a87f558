package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// bySuffix joins NAME.tif with NAME.tfw and whatever else is NAME.*, as a rule would.
func bySuffix(_ context.Context, _ layout.Name, _ string, names []string) (sets []Set) {
	for _, main := range names {
		base, ok := strings.CutSuffix(main, ".tif")
		if !ok {
			continue
		}
		s := Set{Name: base, Files: []string{main}, Lacks: base + ".tfw"}
		for _, name := range names {
			if name != main && strings.HasPrefix(name, base+".") {
				s.Files = append(s.Files, name)
			}
			if name == base+".tfw" {
				s.Lacks = ""
			}
		}
		if len(s.Files) > 1 {
			sets = append(sets, s)
		}
	}
	return sets
}

func newSetBench(t testing.TB) *bench { return newBench(t).joining() }

func (w *bench) joining() *bench {
	w.opt.Together = bySuffix
	return w
}

// dropSet drops the five files of a map into a folder of drops.
func (w *bench) dropSet(dir, name string) {
	w.t.Helper()
	for file, content := range setFiles(name) {
		w.write(dir+"/"+file, content)
	}
}

func setFiles(name string) map[string]string {
	files := map[string]string{}
	for _, end := range []string{".tif", ".tfw", ".tif.aux.xml", ".tif.ovr", ".xml"} {
		files[name+end] = end + " of " + name
	}
	return files
}

// below puts a folder before names.
func below(dir string, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, content := range files {
		out[dir+"/"+name] = content
	}
	return out
}

// Five loose files that belong together are one drop and one item, in a folder of their
// name; what lies beside them is a drop of its own.
func TestSetIsOneDrop(t *testing.T) {
	w := newSetBench(t)
	w.dropSet("inbox/default", "map")
	w.write("inbox/default/letter.txt", "x")
	w.later(3 * time.Second)
	w.wantScan([]string{"letter.txt", "map"}, nil, nil)
	d := w.settled("map")
	if !d.IsSet() || d.Kind != Folder || d.Files != 5 || d.Bytes == 0 {
		t.Errorf("%+v", d)
	}
	got, err := w.Take(context.Background(), d, Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	w.wantScan([]string{"letter.txt"}, nil, nil)
	w.wantFiles("inbox/default", map[string]string{"letter.txt": "x"})
	if content.Exists(w.path("inbox/default/" + setsName)) {
		t.Error("the folder in which sets are gathered is left")
	}
	home := w.promoted(got)
	if err := w.Done(home); err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("intake")
	w.wantFiles(layout.ItemDir(got.ID)+"/source", below("map", setFiles("map")))
}

// The quiet time counts for the whole set: one file that has changed, or come, just now
// keeps all waiting. So does one of a set that is not whole yet, whose files are drops of
// their own after that.
func TestSetIsStillAsAWhole(t *testing.T) {
	w := newSetBench(t)
	touch := func(rel string) {
		now := w.opt.Now()
		w.write(rel, "more")
		if err := os.Chtimes(w.path(rel), now, now); err != nil {
			t.Fatal(err)
		}
	}
	w.dropSet("inbox/default", "map")
	w.later(10 * time.Minute)
	w.atOnce()
	touch("inbox/default/map.prj")
	w.wantScan(nil, []string{"map"}, nil)
	if r := w.reason("map"); r != "is still growing: 6 files that belong together" {
		t.Error(r)
	}
	w.later(time.Minute)
	w.settled("map")

	w.write("inbox/default/plan.tif", "x")
	w.write("inbox/default/plan.xml", "x")
	w.later(10 * time.Minute)
	w.wantScan([]string{"map", "plan.tif", "plan.xml"}, nil, nil)
	w.atOnce()
	touch("inbox/default/plan.xml")
	w.wantScan([]string{"map"}, []string{"plan.tif", "plan.xml"}, nil)
	if r := w.reason("plan.tif"); r != "waits for plan.xml, which belongs with it and is still growing" {
		t.Error(r)
	}
	touch("inbox/default/plan.tfw") // now it is whole
	w.wantScan([]string{"map"}, []string{"plan"}, nil)
	w.later(time.Minute)
	w.wantScan([]string{"map", "plan"}, nil, nil)
}

// Files are renamed into place one by one: none of a set settles by that. Where sets are
// taken apart, and for folders, a rename settles as ever.
func TestSetRenamedInWaitsForTheRest(t *testing.T) {
	w := newSetBench(t)
	old := w.opt.Now().Add(-time.Hour)
	w.wantScan(nil, nil, nil)
	w.dropSet("elsewhere", "map")
	w.later(10 * time.Minute)
	w.wantScan(nil, nil, nil)
	for _, name := range []string{"map.tfw", "map.tif"} {
		if err := os.Rename(w.path("elsewhere/"+name), w.path("inbox/default/"+name)); err != nil {
			t.Fatal(err)
		}
		w.noteMoved(w.path("inbox/default/"+name), w.opt.Now().Add(time.Minute))
		now := w.opt.Now()
		if err := os.Chtimes(w.path("inbox/default/"+name), old, now); err != nil {
			t.Fatal(err)
		}
		_, waiting, _ := w.scan()
		if len(waiting) != 1 {
			t.Errorf("after %s: waiting %v", name, waiting)
		}
	}
	w.set(Settling{Quiet: 2 * time.Second, Apart: true})
	w.later(time.Minute)
	w.wantScan([]string{"map.tfw", "map.tif"}, nil, nil)
}

// A file whose name no others go with is whole as soon as it is renamed in.
func TestLoneFileRenamedInSettles(t *testing.T) {
	w := newSetBench(t)
	w.opt.Companions = func(c layout.Name, name string) bool { return c == "default" && name != "letter.pdf" }
	w.set(w.opt.Settling)
	w.write("elsewhere/letter.pdf", "x")
	w.write("elsewhere/map.tif", "x")
	w.later(10 * time.Minute)
	w.wantScan(nil, nil, nil)
	for _, name := range []string{"letter.pdf", "map.tif"} {
		if err := os.Rename(w.path("elsewhere/"+name), w.path("inbox/default/"+name)); err != nil {
			t.Fatal(err)
		}
		if now := w.opt.Now(); os.Chtimes(w.path("inbox/default/"+name), now, now) != nil {
			t.Fatal("no times")
		}
		w.noteMoved(w.path("inbox/default/"+name), w.opt.Now().Add(time.Minute))
	}
	w.wantScan([]string{"letter.pdf"}, []string{"map.tif"}, nil)
}

// A marker of the set's name or of one of its files settles it, and goes with it.
func TestSetByMarker(t *testing.T) {
	for _, marker := range []string{"map.ready", "map.tif.done", "map.tfw.ready"} {
		w := newSetBench(t)
		w.set(Settling{Quiet: 2 * time.Second, Complete: ByMarker, Sidecars: true})
		w.dropSet("inbox/default", "map")
		w.later(10 * time.Minute)
		w.wantScan(nil, []string{"map"}, nil)
		if r := w.reason("map"); r != "waits for its marker, map.ready or map.done" {
			t.Error(r)
		}
		w.write("inbox/default/"+marker, "")
		w.write("inbox/default/map.metadata.json", "{}")
		w.write("inbox/default/map.tif.metadata.json", "{}")
		w.later(10 * time.Minute)
		d := w.settled("map")
		if len(d.Sidecars) != 2 || d.Marker != w.path("inbox/default/"+marker) || d.Files != 5 {
			t.Errorf("%s: %+v", marker, d)
		}
		got, err := w.Take(context.Background(), d, Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Done(w.promoted(got)); err != nil {
			t.Fatal(err)
		}
		w.wantEmpty("inbox/default")
	}
}

// A file that cannot be read, and one that changes while the set is taken, keep all of
// the set in the inbox.
func TestSetGoesBackAsAWhole(t *testing.T) {
	w := newSetBench(t)
	w.dropSet("inbox/default", "map")
	w.later(3 * time.Second)
	d := w.settled("map")
	n := 0
	w.at = func(step string) {
		if n++; step == "gather" && n == 4 {
			w.write("inbox/default/map.xml", "longer than before, by another hand")
		}
	}
	if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	w.at = func(string) {}
	want := setFiles("map")
	want["map.xml"] = "longer than before, by another hand"
	w.wantFiles("inbox/default", want)
	w.wantEmpty("intake")

	w.later(time.Hour)
	d = w.settled("map")
	w.at = func(step string) {
		if step == "gather" && content.Exists(w.path("inbox/default/map.tif.ovr")) {
			os.Remove(w.path("inbox/default/map.tif.ovr"))
		}
	}
	if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	delete(want, "map.tif.ovr")
	w.wantFiles("inbox/default", want)
	w.wantEmpty("intake")

	// One whose first file is gone was another's.
	w.at = func(string) {}
	w.later(time.Hour)
	d = w.settled("map")
	if err := os.Remove(w.path("inbox/default/map.tif")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	w.wantEmpty("intake")
	if content.Exists(w.path("inbox/default/" + setsName)) {
		t.Error("the folder in which sets are gathered is left")
	}
}

// killed is a process that ends at a step.
type killed struct{}

// dieAt lets act end at its kth step, as a kill would; done tells that it came to its end.
func (w *bench) dieAt(k int, act func()) (done bool) {
	n := 0
	w.at = func(string) {
		if n++; n == k {
			panic(killed{})
		}
	}
	defer func() {
		w.at = func(string) {}
		if r := recover(); r != nil {
			if _, mine := r.(killed); !mine {
				panic(r)
			}
		}
	}()
	act()
	return true
}

// A kill at any point of taking a set, or of putting it back, loses nothing; while it is
// half taken no other process takes one of its files for a drop; and in the end it is one
// item.
func TestSetKilledAtEveryStep(t *testing.T) {
	for _, far := range []bool{false, true} {
		for _, undo := range []bool{false, true} {
			t.Run(fmt.Sprintf("far=%v undo=%v", far, undo), func(t *testing.T) { sweepSet(t, far, undo) })
		}
	}
}

func sweepSet(t *testing.T, far, undo bool) {
	for k := 1; ; k++ {
		w := newBench(t)
		if far {
			w = newBenchAcross(t)
		}
		w.joining()
		dir := map[bool]string{false: "inbox/default", true: "inbox/far"}[far]
		w.dropSet(dir, "map")
		w.later(3 * time.Second)
		d := w.settled("map")
		done := w.dieAt(k, func() {
			got, err := w.Take(context.Background(), d, Ticket{})
			if err == nil && undo {
				err = w.Undo(got)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		other := w.next().joining() // of a process that is there all the time
		other.later(time.Hour)
		if settled, waiting, bad := other.scan(); len(waiting)+len(bad) > 0 || len(settled) > 1 || len(settled) == 1 && settled[0].Files != 5 {
			t.Fatalf("step %d: another process sees %+v, waiting %v, bad %v", k, settled, waiting, bad)
		}
		next := w.next().joining()
		next.later(time.Hour)
		ours := next.pending()
		if settled, _, _ := next.scan(); len(settled) > 0 {
			if len(ours) > 0 {
				t.Fatalf("step %d: in the intake %v, and in the inbox %+v", k, ours, settled)
			}
			got, err := next.Take(context.Background(), next.settled("map"), Ticket{})
			if err != nil {
				t.Fatalf("step %d: %v", k, err)
			}
			ours = []Taken{got}
		}
		if len(ours) != 1 {
			t.Fatalf("step %d: %d drops", k, len(ours))
		}
		if err := next.Done(next.promoted(ours[0])); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		next.wantEmpty(dir)
		next.wantEmpty("intake")
		next.wantFiles(layout.ItemDir(ours[0].ID)+"/source", below("map", setFiles("map")))
		if done {
			if k < 6 {
				t.Errorf("only %d steps", k)
			}
			return
		}
	}
}

// What was gathered by a take whose journal is gone is told of; a folder of that name
// that a crash left empty goes.
func TestSetGatheredByNobody(t *testing.T) {
	w := newSetBench(t)
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.write("inbox/default/"+setsName+"/"+string(id)+"/map.tif", "x")
	w.mkdir("inbox/default/" + setsName + "/mine")
	_, waiting, _ := w.scan()
	if len(waiting) != 2 || !strings.Contains(waiting[0].Reason+waiting[1].Reason, "move them to inbox/default to have them taken anew") {
		t.Errorf("%+v", waiting)
	}
	if err := os.RemoveAll(w.path("inbox/default/" + setsName)); err != nil {
		t.Fatal(err)
	}
	w.mkdir("inbox/default/" + setsName)
	w.wantScan(nil, nil, nil)
	if content.Exists(w.path("inbox/default/" + setsName)) {
		t.Error("it is left")
	}
}

// Two processes that take sets and single files side by side have each once, whole.
func TestTwoProcessesShareTheSets(t *testing.T) {
	const sets = 80
	w := newSetBench(t)
	for i := range sets {
		w.dropSet("inbox/default", fmt.Sprintf("map-%03d", i))
	}
	ps := []*process{start(t, w, "race"), start(t, w, "race")}
	got := make([][]string, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		p.begin()
		wg.Go(func() {
			var done bool
			if got[i], done = p.read(); !done {
				t.Error("a child did not finish")
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(got...)))
	if len(all) != sets || len(slices.Compact(all)) != sets {
		t.Errorf("%d and %d of %d: %v", len(got[0]), len(got[1]), sets, all)
	}
	w.wantEmpty("inbox/default")
	w.wantEmpty("intake")
	w.wantSetsInItems(sets)
}

// wantSetsInItems checks that every set is in one item, whole.
func (w *bench) wantSetsInItems(sets int) {
	w.t.Helper()
	items := map[string]map[string]string{}
	for path, content := range w.files("items") {
		id, rest, ok := layout.ItemOfPath("items/" + path)
		name, inside := strings.CutPrefix(rest, "source/")
		if !ok || !inside {
			w.t.Errorf("unexpected file %s", path)
			continue
		}
		if items[string(id)] == nil {
			items[string(id)] = map[string]string{}
		}
		items[string(id)][name] = content
	}
	for id, files := range items {
		for path := range files {
			name := filepath.Dir(path)
			if !maps.Equal(files, below(name, setFiles(name))) {
				w.t.Errorf("item %s holds %v", id, slices.Sorted(maps.Keys(files)))
			}
			break
		}
	}
	if len(items) != sets {
		w.t.Errorf("%d items of %d sets", len(items), sets)
	}
}

// A child is killed again and again while it takes sets; the next one recovers first.
func TestKillInTheMiddleOfTakingSets(t *testing.T) {
	rounds := 8
	if os.Getenv("BAGPIPE_SOAK") != "" {
		rounds = 300
	}
	w := newSetBench(t)
	sets, recovered := 0, 0
	for round := range rounds {
		for range 6 {
			w.dropSet("inbox/default", fmt.Sprintf("map-%04d", sets))
			sets++
		}
		p := start(t, w, "slow")
		p.begin()
		for range 1 + round%3 {
			if !p.out.Scan() {
				t.Fatal("the child ended")
			}
		}
		spin(time.Duration(round*37%200) * 10 * time.Microsecond)
		p.kill()
		next := w.next().joining()
		for _, got := range next.pending() {
			recovered++
			if err := next.Done(next.promoted(got)); err != nil {
				t.Fatal(err)
			}
		}
		w.wantEmpty("intake")
	}
	p := start(t, w, "race")
	p.begin()
	if _, done := p.read(); !done {
		t.Fatal("the last child did not finish")
	}
	t.Logf("%d sets, %d recovered after a kill", sets, recovered)
	w.wantEmpty("inbox/default")
	w.wantEmpty("intake")
	w.wantSetsInItems(sets)
}
