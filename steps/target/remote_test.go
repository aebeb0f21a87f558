package target_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"bagpipe/layout"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

func TestSFTP(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T) targettest.Place {
				dir := filepath.Join(sample.TempDir(t), "vault")
				return targettest.Place{Target: open(t, target.Config{Kind: target.KindSFTP, Layout: form, Path: dir, SFTPConfig: targettest.NewSFTP(t).SFTPConfig}),
					Damage: func(t *testing.T, part string) bool { return targettest.FlipIn(t, dir, part) }}
			})
		})
	}
}

func TestS3(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T) targettest.Place {
				s := targettest.NewS3(t, false)
				return targettest.Place{Target: open(t, target.Config{Kind: target.KindS3, Layout: form, Secrets: s.Secrets, S3Config: s.S3Config}),
					Damage: func(t *testing.T, part string) bool {
						return targettest.FlipIn(t, filepath.Join(s.Dir, "buckets", s.Bucket), part)
					}}
			})
		})
	}
}

// A server with another key is not talked to.
func TestSFTPOfAnotherKey(t *testing.T) {
	one, two := targettest.NewSFTP(t), targettest.NewSFTP(t)
	known, err := os.ReadFile(two.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Replace(string(known), strings.SplitN(string(known), " ", 2)[0], knownAs(t, one.KnownHosts), 1)
	if err := os.WriteFile(one.KnownHosts, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = target.Open("test", target.Config{Kind: target.KindSFTP, Path: "/nowhere", SFTPConfig: one.SFTPConfig}, targettest.Now)
	var down *target.Down
	if !errors.As(err, &down) || !strings.Contains(err.Error(), "key mismatch") {
		t.Errorf("a server with another key: %v", err)
	}
}

func knownAs(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitN(string(data), " ", 2)[0]
}

// A server that goes away lets the deposit wait; one that comes back is used again.
func TestSFTPThatGoesAway(t *testing.T) {
	s := targettest.NewSFTP(t)
	to := open(t, target.Config{Kind: target.KindSFTP, Path: filepath.Join(sample.TempDir(t), "vault"), SFTPConfig: s.SFTPConfig})
	s.Stop()
	_, err := to.Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"}))
	var down *target.Down
	if !errors.As(err, &down) {
		t.Errorf("put on a server that is away: %v", err)
	}
}

// A file that was sent in part is gone on with; a part that is wrong is sent anew.
func TestSFTPGoesOn(t *testing.T) {
	s, dir := targettest.NewSFTP(t), filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindSFTP, Layout: target.LayoutTar, Path: dir, SFTPConfig: s.SFTPConfig})
	for _, text := range []string{"right", "wrong"} {
		b := targettest.NewBag(t, text, targettest.Now(), map[string]string{"a": strings.Repeat("A", 1<<20)})
		b.Version = map[string]int{"right": 1, "wrong": 2}[text]
		first, err := to.Put(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(dir, first.Place)
		whole, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		part := bytes.Clone(whole[:1<<19])
		if text == "wrong" {
			part[1<<18] ^= 1
		}
		must(t, os.Remove(place), os.WriteFile(filepath.Join(filepath.Dir(place), "."+filepath.Base(place)+".part"), part, 0o644))
		sent := int64(0)
		b.Progress = func(n int64) { sent += n }
		if _, err := to.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(place); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("%s: the tar is not the same: %v", text, err)
		}
		size := int64(len(whole))
		if most := map[string]int64{"right": 2*size - 1<<19, "wrong": 4*size - 1<<19}[text]; sent > most {
			t.Errorf("%s: %d bytes were sent and read back, want at most %d", text, sent, most)
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A bag without its bagit.txt is none: the next put finishes it, also where an earlier bag's
// files are in the way.
func TestS3GoesOn(t *testing.T) {
	s := targettest.NewS3(t, false)
	to := open(t, target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config})
	content := map[string]string{"a": "A", "b": "B"}
	first, err := to.Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), content))
	must(t, err)
	for _, name := range []string{"bagit.txt", "data/b"} {
		must(t, s.Client.RemoveObject(t.Context(), s.Bucket, first.Place+"/"+name, minio.RemoveObjectOptions{}))
	}
	if _, _, err := to.Check(t.Context(), first, target.Read); err == nil {
		t.Error("half a bag is sound")
	}
	b := targettest.NewBag(t, "another title", targettest.Now(), content)
	c, err := to.Put(t.Context(), b)
	must(t, err)
	if c.Place != first.Place {
		t.Errorf("it was put at %s, and the first at %s", c.Place, first.Place)
	}
	_, _, err = to.Check(t.Context(), c, target.Read)
	must(t, err)
}

// Of a dead put's files those that are sound stay, and one that was altered on its way is sent again.
func TestS3SendsTheAlteredAlone(t *testing.T) {
	s := targettest.NewS3(t, false)
	to := open(t, target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B"})
	c, err := to.Put(t.Context(), b)
	must(t, err)
	must(t, s.Client.RemoveObject(t.Context(), s.Bucket, c.Place+"/bagit.txt", minio.RemoveObjectOptions{}))
	_, err = s.Client.PutObject(t.Context(), s.Bucket, c.Place+"/data/b", strings.NewReader("Z"), 1, minio.PutObjectOptions{})
	must(t, err)
	stat := func() os.FileInfo {
		i, err := os.Stat(filepath.Join(s.Dir, "buckets", s.Bucket, c.Place, "data/a"))
		must(t, err)
		return i
	}
	before := stat()
	again, err := to.Put(t.Context(), b)
	must(t, err)
	if !os.SameFile(before, stat()) {
		t.Error("a sound file was sent again")
	}
	_, _, err = to.Check(t.Context(), again, target.Read)
	must(t, err)
}

// An upload in parts that was interrupted goes on with the parts that are there, and leaves
// no other.
func TestS3Parts(t *testing.T) {
	t.Parallel()
	s := targettest.NewS3(t, false)
	to := open(t, target.Config{Kind: target.KindS3, Layout: target.LayoutTar, Secrets: s.Secrets, S3Config: s.S3Config})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": strings.Repeat("0123456789abcdef", 9<<20)})
	ctx, cut := context.WithCancel(t.Context())
	var sent atomic.Int64
	b.Progress = func(n int64) {
		if sent.Add(n) > 64<<20 {
			cut()
		}
	}
	if _, err := to.Put(ctx, b); err == nil {
		t.Fatal("the upload was not cut")
	}
	sent.Store(0)
	b.Progress = func(n int64) { sent.Add(n) }
	c, err := to.Put(t.Context(), b)
	must(t, err)
	if sent.Load() > 2*c.Bytes-60<<20 {
		t.Errorf("%d bytes were sent and read back of %d: no part was kept", sent.Load(), c.Bytes)
	}
	for u := range s.Client.ListIncompleteUploads(t.Context(), s.Bucket, "", true) {
		t.Errorf("an upload is left: %+v", u)
	}
	if files, size, err := to.Check(t.Context(), c, target.Read); err != nil || files != c.Files || size != c.Bytes {
		t.Errorf("%d files, %d bytes, %v; the copy: %+v", files, size, err, c)
	}
}

// What is locked says until when; a bucket without lock is refused.
func TestS3Lock(t *testing.T) {
	with, without := targettest.NewS3(t, true), targettest.NewS3(t, false)
	lock := target.LockConfig{Mode: "governance", For: layout.Duration(24 * 3600 * 1e9)}
	without.Lock, with.Lock = lock, lock
	to, err := target.Open("test", target.Config{Kind: target.KindS3, Secrets: with.Secrets, S3Config: with.S3Config}, time.Now)
	must(t, err)
	c, err := to.Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"}))
	must(t, err)
	o, err := with.Client.StatObject(t.Context(), with.Bucket, c.Place+"/data/a", minio.StatObjectOptions{})
	must(t, err)
	mode := o.Metadata.Get("X-Amz-Object-Lock-Mode")
	until, err := time.Parse(time.RFC3339, o.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	must(t, err)
	if mode != "GOVERNANCE" || until.Sub(c.Retention).Abs() > time.Minute {
		t.Errorf("locked: %v until %v; the copy: %+v", mode, until, c)
	}
	var down *target.Down
	if _, err := target.Open("test", target.Config{Kind: target.KindS3, Secrets: without.Secrets, S3Config: without.S3Config}, targettest.Now); !errors.As(err, &down) || !strings.Contains(err.Error(), "no object lock") {
		t.Errorf("a bucket without lock: %v", err)
	}
}

// No error shows a secret, and a file that others may read is refused.
func TestSecrets(t *testing.T) {
	file := filepath.Join(sample.TempDir(t), "secrets.yaml")
	config := target.Config{Kind: target.KindS3, Secrets: file, S3Config: target.S3Config{Endpoint: "http://127.0.0.1:1", Bucket: "b"}}
	for _, c := range []struct {
		mode fs.FileMode
		text string
		want string
	}{{0o644, "accessKey: a\nsecretKey: hush", "others than its owner"}, {0o600, "secretKey: hush\nwrong: hush", "is not YAML with"}, {0o600, "accessKey: hush", "neither"}} {
		must(t, os.WriteFile(file, []byte(c.text), c.mode), os.Chmod(file, c.mode))
		_, err := target.Open("test", config, targettest.Now)
		var down *target.Down
		if !errors.As(err, &down) || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of %q: %v", c.mode, c.text, err)
		}
	}
}
