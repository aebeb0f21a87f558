package target_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"bagpipe/layout"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// lockedBucket is a target on a bucket that locks for a day, by a clock of its own.
func lockedBucket(t *testing.T, form string) (s *targettest.S3, to target.Target, later func(time.Duration)) {
	t.Helper()
	s = targettest.NewS3(t, true)
	s.Lock = target.LockConfig{Mode: "governance", For: layout.Duration(24 * time.Hour)}
	var ahead time.Duration
	to, err := target.Open("test", target.Config{Kind: target.KindS3, Layout: form, Secrets: s.Secrets, S3Config: s.S3Config}, func() time.Time { return time.Now().Add(ahead) })
	must(t, err)
	t.Cleanup(func() { must(t, to.Close()) })
	return s, to, func(d time.Duration) { ahead += d }
}

// locked wants all objects that a copy is made of to be locked until its record says, and a day from when at the least.
func locked(t *testing.T, s *targettest.S3, c target.Copy, from time.Time, names ...string) {
	t.Helper()
	if least := from.Add(24 * time.Hour); c.Retention.Before(least.Add(-time.Minute)) {
		t.Errorf("the copy is locked until %v, and should be until %v", c.Retention, least)
	}
	n := 0
	for o := range s.Client.ListObjects(t.Context(), s.Bucket, minio.ListObjectsOptions{Recursive: true, Prefix: c.Place}) {
		must(t, o.Err)
		if name := strings.TrimPrefix(o.Key, c.Place); len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		n++
		stat, err := s.Client.StatObject(t.Context(), s.Bucket, o.Key, minio.StatObjectOptions{})
		must(t, err)
		until, err := time.Parse(time.RFC3339, stat.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
		must(t, err)
		if until.Before(c.Retention.Truncate(time.Second)) {
			t.Errorf("%s is locked until %v, and the copy until %v", o.Key, until, c.Retention)
		}
	}
	if n == 0 || n < len(names) {
		t.Errorf("%d objects of %s", n, c.Place)
	}
}

// What a copy has of older files, of a put that died or of an earlier version, is locked for as long as what is written of it; a mended
// copy is locked as a whole; and one that is found there is told to be locked as it is.
func TestS3LocksAllOfACopy(t *testing.T) {
	content := map[string]string{"a": "A", "big": strings.Repeat("x", 100_000)}
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s, to, later := lockedBucket(t, form)
			b := targettest.NewBag(t, "one", targettest.Now(), content)
			c, err := to.Put(t.Context(), b)
			must(t, err)
			locked(t, s, c, time.Now())
			later(time.Hour)
			again, err := to.Put(t.Context(), b)
			must(t, err)
			if again.Retention.Sub(c.Retention).Abs() > time.Minute {
				t.Errorf("found there, it is locked until %v, and was put until %v", again.Retention, c.Retention)
			}
			later(time.Hour)
			if !targettest.FlipIn(t, s.Dir+"/buckets", map[string]string{target.LayoutTar: ".tar"}[form]+map[string]string{target.LayoutBag: "data/a", target.LayoutOCFL: "data/a"}[form]) {
				t.Fatal("nothing was damaged")
			}
			made, err := to.Replace(t.Context(), c, b)
			must(t, err)
			if form == target.LayoutOCFL {
				locked(t, s, made, time.Now().Add(2*time.Hour), "/v1/content/data/a", "/v1/content/data/big", "/v1/content/bagit.txt", "/0=ocfl_object_1.1")
				return
			}
			locked(t, s, made, time.Now().Add(2*time.Hour))
		})
	}
	t.Run("a put that died", func(t *testing.T) {
		t.Parallel()
		s, to, later := lockedBucket(t, target.LayoutBag)
		b := targettest.NewBag(t, "one", targettest.Now(), content)
		c, err := to.Put(t.Context(), b)
		must(t, err, s.Client.RemoveObject(t.Context(), s.Bucket, c.Place+"/bagit.txt", minio.RemoveObjectOptions{}))
		later(time.Hour)
		c, err = to.Put(t.Context(), b)
		must(t, err)
		locked(t, s, c, time.Now().Add(time.Hour))
	})
	t.Run("a next version", func(t *testing.T) {
		t.Parallel()
		s, to, later := lockedBucket(t, target.LayoutOCFL)
		b := targettest.NewBag(t, "one", targettest.Now(), content)
		_, err := to.Put(t.Context(), b)
		must(t, err)
		later(time.Hour)
		b = targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": content["big"], "new": "N"})
		b.Version = 2
		c, err := to.Put(t.Context(), b)
		must(t, err)
		locked(t, s, c, time.Now().Add(time.Hour), "/v1/content/data/big", "/v2/content/data/new", "/v2/inventory.json", "/0=ocfl_object_1.1")
	})
	t.Run("an upload in parts", func(t *testing.T) {
		t.Parallel()
		s, to, later := lockedBucket(t, target.LayoutTar)
		b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": strings.Repeat("0123456789abcdef", 5<<20)})
		ctx, cut := context.WithCancel(t.Context())
		b.Progress = func(int64) { cut() }
		if _, err := to.Put(ctx, b); err == nil {
			t.Fatal("the upload was not cut")
		}
		later(time.Hour)
		b.Progress = nil
		c, err := to.Put(t.Context(), b)
		must(t, err)
		locked(t, s, c, time.Now().Add(time.Hour))
	})
}
