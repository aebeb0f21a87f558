package target_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"bagpipe/layout"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// open opens a target that is closed with the test.
func open(t *testing.T, c target.Config) target.Target {
	t.Helper()
	to, err := target.Open("test", c, targettest.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := to.Close(); err != nil {
			t.Error(err)
		}
	})
	return to
}

// A copy that the disk does not give is damaged otherwise than one whose bytes are others; a disk that is full, or whose
// bytes may not be read, is down.
func TestWhatTheDiskDoesNotGiveIsUnread(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "read", Path: "data/a", Err: err} }
	for _, say := range []func(error) error{target.Unsound, target.InFolder} {
		var wrong *target.Damage
		if err := say(at(syscall.EIO)); !errors.As(err, &wrong) || !wrong.Unread {
			t.Errorf("an error of the disk is %#v", err)
		}
		if err := say(&target.Damage{Text: "changed"}); !errors.As(err, &wrong) || wrong.Unread {
			t.Errorf("damage is %#v", err)
		}
	}
	for _, err := range []error{syscall.EACCES, syscall.ENOSPC, syscall.ESTALE} {
		var down *target.Down
		if err := target.InFolder(at(err)); !errors.As(err, &down) {
			t.Errorf("%v is %#v", err, err)
		}
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T) targettest.Place {
				dir := filepath.Join(sample.TempDir(t), "vault")
				return targettest.Place{Target: open(t, target.Config{Kind: target.KindFolder, Layout: form, Path: dir}),
					Damage: func(t *testing.T, part string) bool { return targettest.FlipIn(t, dir, part) }}
			})
		})
	}
}

// A folder without the mark may be where something else should be mounted.
func TestFolderThatIsNotMounted(t *testing.T) {
	dir := sample.TempDir(t)
	_, err := target.Open("test", target.Config{Kind: target.KindFolder, Path: dir}, targettest.Now)
	var down *target.Down
	if !errors.As(err, &down) {
		t.Fatalf("a folder without its mark: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, layout.StoreFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, target.Config{Kind: target.KindFolder, Path: dir})
}

// A disk that goes while its target is open leaves an empty folder where it was mounted.
func TestATargetWhoseDiskGoesIsDown(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	p, c := &target.Pool{Now: targettest.Now}, target.Config{Kind: target.KindFolder, Path: dir}
	if _, err := p.Take("vault", c); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+".off"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	var down *target.Down
	if _, err := p.Take("vault", c); !errors.As(err, &down) {
		t.Errorf("its disk is gone: %v", err)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".off", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take("vault", c); err != nil {
		t.Error(err)
	}
}

// A folder is never seen without its mark: several that open a new target at once all do, and one
// that was killed while it made the folder leaves nothing that the next waits for.
func TestTargetsAreMadeWithTheirMark(t *testing.T) {
	s := targettest.NewSFTP(t)
	for _, kind := range []string{target.KindFolder, target.KindSFTP} {
		t.Run(kind, func(t *testing.T) {
			for n := range 20 {
				top := sample.TempDir(t)
				dir, half := filepath.Join(top, "deep", "vault"), filepath.Join(top, "deep", ".vault.new")
				if n%2 == 1 {
					if err := os.MkdirAll(half, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				c := target.Config{Kind: kind, Path: dir}
				if kind == target.KindSFTP {
					c.SFTPConfig = s.SFTPConfig
				}
				var all errgroup.Group
				for range 8 {
					all.Go(func() error {
						to, err := target.Open("test", c, targettest.Now)
						if err != nil {
							return err
						}
						return to.Close()
					})
				}
				if err := all.Wait(); err != nil {
					t.Fatal(err)
				}
				open(t, c)
				if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
					t.Fatalf("left: %v, %v", left, err)
				}
			}
		})
	}
}

// What a dead put left is gone on with: files that are whole are kept.
func TestPutGoesOn(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Path: dir})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"whole": "W", "half": "HALF", "wrong": "right"})
	part := filepath.Join(dir, "3/f/a/9", "."+string(targettest.Item)+".part", "data")
	if err := os.MkdirAll(part, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"whole": "W", "half": "HA", "wrong": "wrong"} {
		if err := os.WriteFile(filepath.Join(part, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := to.Put(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(part)); err == nil {
		t.Error("the part stands beside the copy")
	}
}
