package target_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// mounted runs what makes a small file system, and skips the test where it may not.
func mounted(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("no small file system: %s: %v: %s", name, err, out)
	}
}

// smallDisk is a file system of 8 MiB.
func smallDisk(t *testing.T) (dir string, room func()) {
	dir = sample.TempDir(t)
	mounted(t, "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", dir)
	t.Cleanup(func() { must(t, exec.Command("umount", "-l", dir).Run()) })
	return dir, func() { must(t, exec.Command("mount", "-o", "remount,size=256m", dir).Run()) }
}

// smallQuota is a folder on a large file system with a quota of 8 MiB, which binds root as well.
func smallQuota(t *testing.T) (dir string, room func()) {
	top := sample.TempDir(t)
	image, at := filepath.Join(top, "image"), filepath.Join(top, "disk")
	f, err := os.Create(image)
	must(t, err)
	must(t, f.Truncate(512<<20), f.Close(), os.Mkdir(at, 0o755))
	mounted(t, "mkfs.btrfs", "-q", image)
	mounted(t, "mount", "-o", "loop", image, at)
	t.Cleanup(func() { must(t, exec.Command("umount", "-l", at).Run()) })
	dir = filepath.Join(at, "vault")
	mounted(t, "btrfs", "quota", "enable", at)
	mounted(t, "btrfs", "subvolume", "create", dir)
	mounted(t, "btrfs", "qgroup", "limit", "8M", dir)
	return dir, func() { // by the file system's own folder, as nothing can be changed by one whose quota is used up
		must(t, exec.Command("btrfs", "qgroup", "limit", "none", "0/256", at).Run())
	}
}

// A disk that is full, and a quota that is used up, of this machine and of servers: a put that does not fit waits, the copy that is there
// stays sound, and once there is room the put goes through and leaves nothing else.
func TestDisksFull(t *testing.T) {
	for name, small := range map[string]func(*testing.T) (string, func()){"disk": smallDisk, "quota": smallQuota} {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			for _, kind := range []string{target.KindFolder, target.KindSFTP, target.KindS3} {
				t.Run(name+"/"+kind+"/"+form, func(t *testing.T) {
					dir, room := small(t)
					c := target.Config{Kind: kind, Layout: form, Path: dir}
					switch kind {
					case target.KindS3:
						s := targettest.NewS3In(t, dir, false)
						c.Path, c.Secrets, c.S3Config = "", s.Secrets, s.S3Config
					case target.KindSFTP:
						c.SFTPConfig = targettest.NewSSHD(t)
					}
					if kind != target.KindS3 {
						must(t, os.WriteFile(filepath.Join(dir, layout.StoreFile), nil, 0o644))
					}
					fullThenRoom(t, c, dir, room)
				})
			}
		}
	}
}

func fullThenRoom(t *testing.T, c target.Config, dir string, room func()) {
	to := open(t, c)
	first := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	one, err := to.Put(t.Context(), first)
	must(t, err)
	second := targettest.NewBag(t, "two", targettest.Now(), map[string]string{"b": strings.Repeat("0123456789abcdef", 1<<18), "c": strings.Repeat("fedcba9876543210", 1<<19)})
	second.Version = 2
	var down *target.Down
	if _, err := to.Put(t.Context(), second); !errors.As(err, &down) {
		t.Fatalf("a put of 12 MiB into 8: %v", err)
	}
	if strings.Contains(down.Error(), string(second.Item)) {
		t.Errorf("each item that waits has a reason of its own: %v", down)
	}
	if _, _, err := to.Check(t.Context(), one, target.Read); err != nil {
		t.Errorf("the copy that was there: %v", err)
	}
	room()
	two, err := to.Put(t.Context(), second)
	must(t, err)
	for _, c := range []target.Copy{one, two} {
		if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
			t.Errorf("%s: %v", c.Place, err)
		}
	}
	for _, name := range leftIn(t, dir) {
		t.Errorf("%s is left", name)
	}
}
