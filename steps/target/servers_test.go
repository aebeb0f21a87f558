package target_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
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

// OpenSSH's server passes the suite: with its extensions and its own digests, and without.
func TestSSHD(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, verify string
		options      []string
		poor         int
	}{{"remote", "remote", nil, 0}, {"plain", "", []string{"-P", "fsync,posix-rename"}, 2}} {
		s := targettest.NewSSHD(t, c.options...)
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				if testing.Short() && c.verify != "" && form != target.LayoutBag {
					t.Skip("the form changes nothing of where digests are made")
				}
				targettest.Run(t, func(t *testing.T) targettest.Place {
					dir := filepath.Join(sample.TempDir(t), "vault")
					to := open(t, target.Config{Kind: target.KindSFTP, Layout: form, Path: dir, SFTPConfig: s, Outlet: target.Outlet{Verify: c.verify}})
					if poor := to.Poor(); len(poor) != c.poor {
						t.Errorf("it cannot: %q", poor)
					}
					return targettest.Place{Target: to, Damage: func(t *testing.T, part string) bool { return targettest.FlipIn(t, dir, part) }}
				})
			})
		}
	}
}

// A server whose program for digests is away, one that is read-only, a disk that is full, and links
// in the way.
func TestSSHDThatRefuses(t *testing.T) {
	bag := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "big": strings.Repeat("0123456789abcdef", 1<<18)})
	var down *target.Down
	t.Run("read-only", func(t *testing.T) {
		dir := sample.TempDir(t)
		must(t, os.WriteFile(filepath.Join(dir, layout.StoreFile), nil, 0o644))
		to := open(t, target.Config{Kind: target.KindSFTP, Path: dir, SFTPConfig: targettest.NewSSHD(t, "-R")})
		if _, err := to.Put(t.Context(), bag); !errors.As(err, &down) {
			t.Errorf("a put on a read-only server: %v", err)
		}
	})
	t.Run("full", func(t *testing.T) {
		dir := sample.TempDir(t)
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("no small file system: %v: %s", err, out)
		}
		t.Cleanup(func() { must(t, exec.Command("umount", dir).Run()) })
		must(t, os.WriteFile(filepath.Join(dir, layout.StoreFile), nil, 0o644))
		s := targettest.NewSSHD(t)
		small := targettest.NewBag(t, "two", targettest.Now(), map[string]string{"a": "A"})
		each := func(do func(name string, to target.Target)) {
			for _, c := range []target.Config{{Kind: target.KindSFTP, Path: dir, SFTPConfig: s}, {Kind: target.KindFolder, Path: dir}} {
				for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
					c.Layout = form
					to := open(t, c)
					do(string(c.Kind)+"/"+string(form), to)
					must(t, to.Close())
				}
			}
		}
		f, err := os.Create(filepath.Join(dir, "filler"))
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		must(t, f.Close())
		each(func(name string, to target.Target) {
			if _, err := to.Put(t.Context(), small); !errors.As(err, &down) {
				t.Errorf("%s: a put on a disk without a byte: %v", name, err)
			}
		})
		must(t, os.Remove(f.Name()))
		each(func(name string, to target.Target) {
			if _, err := to.Put(t.Context(), small); err != nil {
				t.Errorf("%s: a put once there is room: %v", name, err)
			}
		})
		bag.Version = 2
		each(func(name string, to target.Target) {
			if _, err := to.Put(t.Context(), bag); !errors.As(err, &down) {
				t.Errorf("%s: a put of more than there is room for: %v", name, err)
			}
		})
	})
	t.Run("link", func(t *testing.T) {
		dir, elsewhere := filepath.Join(sample.TempDir(t), "vault"), sample.TempDir(t)
		to := open(t, target.Config{Kind: target.KindSFTP, Path: dir, SFTPConfig: targettest.NewSSHD(t)})
		c, err := to.Put(t.Context(), bag)
		must(t, err)
		at := filepath.Join(dir, c.Place)
		must(t, os.Remove(filepath.Join(at, "data/a")), os.Symlink(elsewhere, filepath.Join(at, "data/a")))
		var wrong *target.Damage
		if _, _, err := to.Check(t.Context(), c, target.Read); !errors.As(err, &wrong) {
			t.Errorf("a link in the place of a file: %v", err)
		}
		_, err = to.Replace(t.Context(), c, bag)
		must(t, err)
		if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
			t.Error(err)
		}
	})
}

// tampered is an S3 server, a proxy before it, and how it is reached through that.
func tampered(t *testing.T) (s *targettest.S3, proxy *targettest.Tamper, through target.S3Config) {
	t.Helper()
	s = targettest.NewS3(t, false)
	proxy = targettest.NewTamper(t, s.Endpoint, "")
	through = s.S3Config
	through.Endpoint = proxy.Endpoint
	return s, proxy, through
}

// What servers and networks do to an upload: the put goes on, or the target is down, and says why;
// the next put makes a sound copy. No message holds a secret.
func TestS3Faults(t *testing.T) {
	t.Parallel()
	s, proxy, config := tampered(t)
	type answer = func(http.ResponseWriter, *http.Request) bool
	first := func(n int64, do answer) func() answer {
		return func() answer {
			var count atomic.Int64
			return func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodPut && count.Add(1) <= n && do(w, r)
			}
		}
	}
	refused := func(status int, code string) answer {
		return func(w http.ResponseWriter, _ *http.Request) bool { return targettest.Refuse(w, status, code) }
	}
	altered := func(_ http.ResponseWriter, r *http.Request) bool {
		data, err := io.ReadAll(r.Body)
		if err == nil && len(data) > 0 {
			data[len(data)/2] ^= 1
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		return false
	}
	for i, c := range []struct {
		name string
		do   func() answer // for one put
		want string        // of what is said of the target; "": the put succeeds
	}{
		{"412", first(1, refused(412, "PreconditionFailed")), "any"},
		{"409", first(1, refused(409, "ConditionalRequestConflict")), "ConditionalRequestConflict"},
		{"503", first(2, refused(503, "SlowDown")), ""},
		{"503 for good", first(1<<40, refused(503, "SlowDown")), "SlowDown"},
		{"clock", first(1<<40, refused(403, "RequestTimeTooSkewed")), "RequestTimeTooSkewed"},
		{"expired", first(1<<40, refused(400, "ExpiredToken")), "ExpiredToken"},
		{"altered", first(1, altered), "any"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
				own := config
				own.Prefix = form + string(rune('a'+i))
				proxy.Do(nil)
				to := open(t, target.Config{Kind: target.KindS3, Layout: form, Secrets: s.Secrets, S3Config: own})
				b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": strings.Repeat("b", 100_000)})
				_, err := to.Put(t.Context(), b) // makes the storage root of OCFL, too
				must(t, err)
				b.Version = 2
				proxy.Do(c.do())
				_, err = to.Put(t.Context(), b)
				var down *target.Down
				if c.want == "" && err != nil || err != nil && !errors.As(err, &down) || c.want != "" && c.want != "any" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && strings.Contains(err.Error(), "secret-of") {
					t.Errorf("%s: %v", form, err)
				}
				proxy.Do(nil)
				made, err := to.Put(t.Context(), b)
				must(t, err)
				if _, _, err := to.Check(t.Context(), made, target.Read); err != nil {
					t.Errorf("%s: the copy: %v", form, err)
				}
				must(t, to.Get(t.Context(), made, sample.TempDir(t)))
			}
		})
	}
}

// An endpoint whose certificate is signed by nobody is talked to with its own CA alone.
func TestS3OwnCA(t *testing.T) {
	s := targettest.NewS3(t, false)
	proxy := targettest.NewTamper(t, s.Endpoint, filepath.Join(sample.TempDir(t), "ca.pem"))
	config := target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config}
	config.Endpoint = proxy.Endpoint
	_, err := target.Open("test", config, targettest.Now)
	var down *target.Down
	if !errors.As(err, &down) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: %v", err)
	}
	config.CA = proxy.CA
	_, err = open(t, config).Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"}))
	must(t, err)
}

// What the server states of the parts' digests is believed where it is what was computed here, and
// nothing is read back.
func TestS3Vouches(t *testing.T) {
	t.Parallel()
	s, proxy, config := tampered(t)
	to := open(t, target.Config{Kind: target.KindS3, Layout: target.LayoutTar, Secrets: s.Secrets, S3Config: config})
	var begun, read atomic.Bool
	proxy.Do(func(_ http.ResponseWriter, r *http.Request) bool {
		begun.Store(begun.Load() || r.Method == http.MethodPost) // before, it looks whether one is there
		if r.Method == http.MethodGet && r.URL.RawQuery == "" && strings.HasSuffix(r.URL.Path, ".tar") && begun.Load() {
			read.Store(true)
		}
		return false
	})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": strings.Repeat("0123456789abcdef", 9<<20)})
	c, err := to.Put(t.Context(), b)
	must(t, err)
	if !begun.Load() || read.Load() {
		t.Errorf("a tar of which the server states the parts' digests was read back")
	}
	if c.Version == "" {
		t.Log("the bucket keeps no versions")
	}
	if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
		t.Error(err)
	}
}

// A damaged object is mended where the bucket keeps older versions and where it does not; of a
// locked one the damaged bytes stay, and a delete marker is no object.
func TestS3Mending(t *testing.T) {
	for name, keeps := range map[string]bool{"versions": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			s := targettest.NewS3(t, false)
			if keeps {
				must(t, s.Client.EnableVersioning(t.Context(), s.Bucket))
			}
			to := open(t, target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config})
			b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B", "big": strings.Repeat("x", 200_000)})
			c, err := to.Put(t.Context(), b)
			must(t, err)
			if (c.Version != "") != keeps {
				t.Errorf("the copy's version is %q", c.Version)
			}
			_, err = s.Client.PutObject(t.Context(), s.Bucket, c.Place+"/data/b", strings.NewReader("Z"), 1, minio.PutObjectOptions{})
			must(t, err)
			var sent atomic.Int64
			b.Progress = func(n int64) { sent.Add(n) }
			made, err := to.Replace(t.Context(), c, b)
			must(t, err)
			if sent.Load() > 500_000 { // the sound file is read, before as far as the damaged one and after, and not sent again
				t.Errorf("%d bytes went for one of a byte", sent.Load())
			}
			if _, _, err := to.Check(t.Context(), made, target.Read); err != nil {
				t.Error(err)
			}
			older := 0
			for o := range s.Client.ListObjects(t.Context(), s.Bucket, minio.ListObjectsOptions{Prefix: c.Place + "/data/b", WithVersions: true, Recursive: true}) {
				must(t, o.Err)
				older++
			}
			if keeps != (older > 2) {
				t.Errorf("%d versions of the damaged object", older)
			}
			for o := range s.Client.ListObjects(t.Context(), s.Bucket, minio.ListObjectsOptions{Recursive: true}) {
				if strings.Contains(o.Key, ".damaged") {
					t.Errorf("%s is left", o.Key)
				}
			}
			must(t, s.Client.RemoveObject(t.Context(), s.Bucket, c.Place+"/bagit.txt", minio.RemoveObjectOptions{}))
			again, err := to.Put(t.Context(), b)
			must(t, err)
			if again.Place != c.Place {
				t.Errorf("after a deletion it stands at %s", again.Place)
			}
		})
	}
}

// An upload of ours that was given up is ended by the next who opens the target, once it is old; a
// key that is none of ours is left alone.
func TestS3Abandoned(t *testing.T) {
	s := targettest.NewS3(t, false)
	core := minio.Core{Client: s.Client}
	for _, key := range []string{"3/f/a/9/" + string(targettest.Item) + ".tar", "someone/else.bin"} {
		_, err := core.NewMultipartUpload(t.Context(), s.Bucket, key, minio.PutObjectOptions{})
		must(t, err)
	}
	count := func(later time.Duration) (n int) {
		to, err := target.Open("test", target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config}, func() time.Time { return time.Now().Add(later) })
		must(t, err)
		must(t, to.Close())
		for range s.Client.ListIncompleteUploads(t.Context(), s.Bucket, "", true) {
			n++
		}
		return n
	}
	if now, later := count(0), count(8*24*time.Hour); now != 2 || later != 1 {
		t.Errorf("%d uploads are left at once, %d after eight days", now, later)
	}
}

// What an interrupted get left is gone on with: whole files are not sent again.
func TestGetGoesOn(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			s := targettest.NewSFTP(t)
			cut := targettest.NewCut(t, s.Host)
			known, err := os.ReadFile(s.KnownHosts)
			must(t, err)
			must(t, os.WriteFile(s.KnownHosts, []byte(strings.Replace(string(known), knownAs(t, s.KnownHosts), "["+strings.Replace(cut.Address, ":", "]:", 1), 1)), 0o644))
			s.Host = cut.Address
			to := open(t, target.Config{Kind: target.KindSFTP, Layout: form, Streams: 1, Path: filepath.Join(sample.TempDir(t), "vault"), SFTPConfig: s.SFTPConfig})
			content := map[string]string{"one": strings.Repeat("1", 8<<20), "two": strings.Repeat("2", 8<<20)}
			b := targettest.NewBag(t, "one", targettest.Now(), content)
			c, err := to.Put(t.Context(), b)
			must(t, err)
			dir := sample.TempDir(t)
			must(t, os.WriteFile(filepath.Join(dir, "stray"), nil, 0o644))
			cut.After(10 << 20)
			if err := to.Get(t.Context(), c, dir); err == nil {
				t.Fatal("the get was not cut")
			}
			cut.After(-1)
			must(t, to.Get(t.Context(), c, dir))
			if cut.Went() > 14<<20 {
				t.Errorf("%d bytes were sent again", cut.Went())
			}
			if same, err := target.SameBag(dir, b.Dir); err != nil || !same {
				t.Errorf("it is not the bag: %v", err)
			}
			for name, text := range content {
				if got, err := os.ReadFile(filepath.Join(dir, "data", name)); err != nil || string(got) != text {
					t.Errorf("%s is not as it was: %v", name, err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "stray")); err == nil {
				t.Error("a stray file is left")
			}
		})
	}
}

// To a folder or a server only what is damaged is sent again.
func TestMendingSendsWhatDiffers(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Path: dir})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "AAAA", "b": "B", "c": "C"})
	c, err := to.Put(t.Context(), b)
	must(t, err)
	at := filepath.Join(dir, c.Place, "data")
	before, err := os.Stat(filepath.Join(at, "c"))
	must(t, err)
	targettest.FlipIn(t, dir, "data/a")
	must(t, os.Remove(filepath.Join(at, "b")), os.WriteFile(filepath.Join(at, "extra"), nil, 0o644))
	made, err := to.Replace(t.Context(), c, b)
	must(t, err)
	after, err := os.Stat(filepath.Join(at, "c"))
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("a sound file was written anew")
	}
	if _, _, err := to.Check(t.Context(), made, target.Read); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, filepath.Dir(c.Place), ".*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Nothing is made in a storage root of another version; one of any known layout is gone on with.
func TestOCFLRoots(t *testing.T) {
	old := sample.TempDir(t)
	must(t, os.WriteFile(filepath.Join(old, layout.StoreFile), nil, 0o644), os.WriteFile(filepath.Join(old, "0=ocfl_1.0"), []byte("ocfl_1.0\n"), 0o644))
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	_, err := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: old}).Put(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), "OCFL 1.1 alone") {
		t.Errorf("a storage root of OCFL 1.0: %v", err)
	}
	for name, config := range map[string]string{"0002-flat-direct-storage-layout": "", "0003-hash-and-id-n-tuple-storage-layout": `{"extensionName": "0003-hash-and-id-n-tuple-storage-layout", "digestAlgorithm": "md5", "tupleSize": 2, "numberOfTuples": 15}`,
		"0006-flat-omit-prefix-storage-layout": `{"extensionName": "0006-flat-omit-prefix-storage-layout", "delimiter": ":"}`} {
		dir := sample.TempDir(t)
		files := map[string]string{layout.StoreFile: "", "0=ocfl_1.1": "ocfl_1.1\n", "ocfl_layout.json": `{"extension": "` + name + `", "description": "d"}`}
		if config != "" {
			files["extensions/"+name+"/config.json"] = config
		}
		for file, text := range files {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
		c, err := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir}).Put(t.Context(), b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r, err := target.ValidateOCFL(t.Context(), dir, false); err != nil || !r.Valid {
			t.Errorf("%s, at %s: %+v, %v", name, c.Place, r, err)
		}
	}
	bad := sample.TempDir(t)
	for file, text := range map[string]string{layout.StoreFile: "", "0=ocfl_1.1": "ocfl_1.1\n", "ocfl_layout.json": `{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": "d"}`,
		"extensions/0003-hash-and-id-n-tuple-storage-layout/config.json": `{"extensionName": "0003-hash-and-id-n-tuple-storage-layout", "tupleSize": -1, "numberOfTuples": -1}`} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(bad, file)), 0o755), os.WriteFile(filepath.Join(bad, file), []byte(text), 0o644))
	}
	if _, err := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: bad}).Put(t.Context(), b); err == nil {
		t.Error("a layout of tuples below none was taken")
	}
}
