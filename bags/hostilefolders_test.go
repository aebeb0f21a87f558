package bags

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
)

// What Bagpipe keeps of its own inside a bag may have come with the bag.

// A plan that is a FIFO, a link, or larger than any: an answer, and nothing changed.
func TestPlanThatIsNoPlainFile(t *testing.T) {
	for about, plant := range map[string]func(p string) error{
		"FIFO":   func(p string) error { return syscall.Mkfifo(p, 0o644) },
		"link":   func(p string) error { return os.Symlink("../data/a.txt", p) },
		"loop":   func(p string) error { return os.Symlink("plan.json", p) },
		"large":  func(p string) error { return cmp.Or(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40)) },
		"folder": func(p string) error { return os.Mkdir(p, 0o755) },
	} {
		dir := goodBag().write(t)
		if err := os.Mkdir(filepath.Join(dir, WorkDir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := plant(filepath.Join(dir, planFile)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { _, err := Recover(t.Context(), dir); ended <- err }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %v", about, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: never ends", about)
		}
		if _, err := os.Lstat(filepath.Join(dir, planFile)); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// pendingChange is a change of the bag that was cut off when its plan stood.
func pendingChange(t *testing.T, dir string) {
	t.Helper()
	e, _, err := openEdit(t.Context(), dir, false, ValidateOptions{Level: Complete})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]byte{}
	for p := range e.v.payload {
		made[p] = nil
	}
	for p := range e.v.tags {
		made[p] = nil
	}
	for p := range made {
		data, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		h := files.SHA384.New()
		h.Write(data)
		made[p] = h.Sum(nil)
	}
	if err := cmp.Or(e.begin(), e.addManifest(files.SHA384, made)); err != nil {
		t.Fatal(err)
	}
	e.step = func() {
		if _, err := os.Lstat(filepath.Join(dir, planFile)); err == nil {
			panic("cut off")
		}
	}
	defer func() {
		if recover() == nil {
			t.Fatal("the change was not cut off")
		}
		if err := cmp.Or(e.v.from.Close(), e.unlock()); err != nil {
			t.Fatal(err)
		}
	}()
	_ = e.commit()
}

// Whatever comes after an interrupted change says what became of that, also where it
// then refuses; and what was asked for before, and is completed now, is done.
func TestWhatWasInterruptedIsSaid(t *testing.T) {
	dir := goodBag().write(t)
	pendingChange(t, dir)
	did, err := AddManifest(t.Context(), dir, files.SHA384, AmendOptions{})
	if err != nil || did.Recovered != Completed {
		t.Errorf("manifest add: %q, %v", did.Recovered, err)
	}
	if r := expectBag(t, dir, true, true, ""); len(r.Algorithms) != 2 {
		t.Errorf("algorithms %q", r.Algorithms)
	}
	if _, err := AddManifest(t.Context(), dir, files.SHA384, AmendOptions{}); err == nil {
		t.Error("added twice")
	}
	for about, call := range map[string]func(dir string) (Outcome, error){
		"update": func(dir string) (Outcome, error) {
			u, err := Update(t.Context(), dir, UpdateOptions{})
			return u.Recovered, err
		},
		"holes": func(dir string) (Outcome, error) {
			h, err := OpenHoles(t.Context(), dir)
			return h.Recovered, err
		},
		"info": func(dir string) (Outcome, error) {
			a, err := SetInfo(t.Context(), dir, []InfoChange{{Field: tagfile.Field{Label: "A", Value: "b"}}}, AmendOptions{})
			return a.Recovered, err
		},
		"manifest": func(dir string) (Outcome, error) {
			a, err := AddManifest(t.Context(), dir, files.MD5, AmendOptions{})
			return a.Recovered, err
		},
	} {
		dir := goodBag().write(t)
		pendingChange(t, dir)
		if err := os.Symlink("a.txt", filepath.Join(dir, "data/link")); err != nil {
			t.Fatal(err)
		}
		if was, err := call(dir); err == nil || was != Completed {
			t.Errorf("%s: %q, %v", about, was, err)
		}
	}
}

// An error in the middle says what stands now.
func TestFailureSaysWhatStands(t *testing.T) {
	dir := payloadFolder(t, bag{"a": "x"})
	_, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Progress: func(files.Progress) { _ = os.Remove(filepath.Join(dir, "a")) }})
	if err == nil || !strings.Contains(err.Error(), "the folder is as it was") {
		t.Errorf("before the plan: %v", err)
	}
	expectGone(t, filepath.Join(dir, WorkDir))

	dir = goodBag().write(t)
	e, _, err := openEdit(t.Context(), dir, false, ValidateOptions{Level: Complete})
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, tagfile.InfoFile)
	e.step = func() {
		if _, err := os.Lstat(filepath.Join(dir, planFile)); err == nil {
			_ = os.Remove(inTheWay)
			_ = os.MkdirAll(filepath.Join(inTheWay, "x"), 0o755)
		}
	}
	err = cmp.Or(e.begin(), e.writeFields(tagfile.InfoFile, e.v.report.Info), e.retag())
	if err == nil {
		err = e.commit()
	}
	if err = e.close(err); err == nil || !strings.Contains(err.Error(), "completes or undoes it") {
		t.Errorf("after the plan: %v", err)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if was, err := Recover(t.Context(), dir); err != nil || was != Completed {
		t.Errorf("%q, %v", was, err)
	}
	expectBag(t, dir, true, true, "")
}

// What has not begun leaves nothing to be taken away, and says nothing of it.
func TestFailureToBeginIsSaidOnce(t *testing.T) {
	dir := goodBag().write(t)
	e, _, err := openEdit(t.Context(), dir, false, ValidateOptions{Level: Complete})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, WorkDir), "in the way")
	err = e.close(e.begin())
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "begun") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, WorkDir)); err != nil || string(data) != "in the way" {
		t.Errorf("%q, %v", data, err)
	}
}

// A create that was killed when all was done but for its empty folder is completed by
// the same call; without that folder, the same bag is not bagged again.
func TestCreateKilledAtItsVeryEnd(t *testing.T) {
	dir := goodBag().write(t)
	if err := os.Mkdir(filepath.Join(dir, WorkDir), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir})
	if err != nil || c.Recovered != Completed {
		t.Errorf("%+v, %v", c, err)
	}
	expectGone(t, filepath.Join(dir, WorkDir))
	expectBag(t, dir, true, true, "")
	_, err = CreateInPlace(t.Context(), CreateOptions{Payload: dir})
	wantRuleOnly(t, "again", err, files.RuleBag)
}
