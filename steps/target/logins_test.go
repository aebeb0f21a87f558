package target_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"

	"bagpipe/layout"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// A target without a key logs in by the agent, with the key that it holds; without an agent, or with one that
// holds no key of the server's, it is down.
func TestSSHDByTheAgent(t *testing.T) {
	s := targettest.NewSSHD(t)
	key := s.Key
	s.Key = ""
	c := target.Config{Kind: target.KindSFTP, Path: filepath.Join(sample.TempDir(t), "vault"), SFTPConfig: s}
	var down *target.Down
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(t.TempDir(), "none"))
	if _, err := target.Open("test", c, targettest.Now); !errors.As(err, &down) || !strings.Contains(err.Error(), "there is no agent") {
		t.Errorf("without an agent: %v", err)
	}
	dir, err := os.MkdirTemp("", "agent-") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait() // it was killed
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // another process: there is no signal
		if c, err := net.Dial("unix", socket); err == nil {
			must(t, c.Close())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no agent")
		}
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	if _, err := target.Open("test", c, targettest.Now); !errors.As(err, &down) {
		t.Errorf("by an agent without a key: %v", err)
	}
	add := exec.Command("ssh-add", key)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	to := open(t, c)
	copied, err := to.Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"}))
	must(t, err)
	if _, _, err := to.Check(t.Context(), copied, target.Read); err != nil {
		t.Error(err)
	}
}

// hostStyleEnv has the test run a child, whose proxy is the one way to the server: the client asks for the proxy of
// its environment once.
const hostStyleEnv = "BAGPIPE_TEST_HOST_STYLE"

// With style: host the bucket is part of the host's name, and the server takes it from there.
func TestS3HostStyle(t *testing.T) {
	const domain = "s3.example.test"
	if child := os.Getenv(hostStyleEnv); child != "" {
		c := target.Config{Kind: target.KindS3, Secrets: child, S3Config: target.S3Config{Endpoint: "http://" + domain, Bucket: "archive", Style: "host"}}
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			c.Layout, c.Prefix = form, form
			to := open(t, c)
			b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "d/é": "B"})
			copied, err := to.Put(t.Context(), b)
			must(t, err)
			if _, _, err := to.Check(t.Context(), copied, target.Read); err != nil {
				t.Error(err)
			}
			back := t.TempDir()
			must(t, to.Get(t.Context(), copied, back))
			if how, err := target.Compare(b.Dir, back); err != nil || how != target.SameBagging {
				t.Errorf("%s comes back as another bag: %v %v", form, how, err)
			}
		}
		return
	}
	s := targettest.NewS3(t, false, "--virtual-domain", domain)
	var byHost, others atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.Host == "archive."+domain && !strings.HasPrefix(r.In.URL.Path, "/archive/") {
			byHost.Add(1)
		} else {
			others.Add(1)
		}
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", strings.TrimPrefix(s.Endpoint, "http://"), r.In.Host
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}})
	t.Cleanup(proxy.Close)
	child := exec.Command(os.Args[0], "-test.run=^TestS3HostStyle$", "-test.v")
	child.Env = append(os.Environ(), hostStyleEnv+"="+s.Secrets, "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestS3HostStyle") {
		t.Fatalf("%v:\n%s", err, out)
	}
	if byHost.Load() == 0 || others.Load() > 0 {
		t.Errorf("%d requests named the bucket by the host, and %d did not", byHost.Load(), others.Load())
	}
}

// In a bucket that locks, a damaged copy is mended while its retention is in force: the damaged bytes stay as an older version, which the
// server lets nobody remove, and the new one is locked, too.
func TestS3MendsWhatIsLocked(t *testing.T) {
	for _, mode := range []string{"governance", "compliance"} {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			t.Run(mode+"/"+form, func(t *testing.T) {
				t.Parallel()
				s := targettest.NewS3(t, true)
				s.Lock = target.LockConfig{Mode: mode, For: layout.Duration(24 * time.Hour)}
				to, err := target.Open("test", target.Config{Kind: target.KindS3, Layout: form, Secrets: s.Secrets, S3Config: s.S3Config}, time.Now)
				must(t, err)
				defer func() { must(t, to.Close()) }()
				b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "big": strings.Repeat("x", 100_000)})
				c, err := to.Put(t.Context(), b)
				must(t, err)
				if !targettest.FlipIn(t, filepath.Join(s.Dir, "buckets", s.Bucket), map[string]string{target.LayoutTar: ".tar"}[form]+map[string]string{target.LayoutBag: "big", target.LayoutOCFL: "big"}[form]) {
					t.Fatal("nothing was damaged")
				}
				var wrong *target.Damage
				if _, _, err := to.Check(t.Context(), c, target.Read); !errors.As(err, &wrong) {
					t.Fatalf("the damage: %v", err)
				}
				made, err := to.Replace(t.Context(), c, b)
				must(t, err)
				if _, _, err := to.Check(t.Context(), made, target.Read); err != nil {
					t.Error(err)
				}
				if made.Retention.Before(c.Retention) {
					t.Errorf("it is locked until %v, and was until %v", made.Retention, c.Retention)
				}
				older, locked := 0, 0
				for o := range s.Client.ListObjects(t.Context(), s.Bucket, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
					must(t, o.Err)
					if o.IsLatest || o.IsDeleteMarker {
						continue
					}
					older++
					if err := s.Client.RemoveObject(t.Context(), s.Bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID}); err != nil {
						locked++
					}
				}
				if older == 0 || locked != older {
					t.Errorf("%d older versions, of which %d are locked", older, locked)
				}
				var down *target.Down
				if err := target.Remove(t.Context(), to, targettest.Item); !errors.As(err, &down) {
					t.Errorf("what is locked was removed: %v", err)
				}
			})
		}
	}
}

// A server that was given another key is not talked to, also by a target that is open, until the file of known hosts has it; the key
// that the target logs in with is read anew, too.
func TestSFTPKeysChange(t *testing.T) {
	was, is := targettest.NewSFTP(t), targettest.NewSFTP(t)
	cut := targettest.NewCut(t, was.Host)
	knownOf := func(s *targettest.SFTP) []byte {
		text, err := os.ReadFile(s.KnownHosts)
		must(t, err)
		return []byte(strings.Replace(string(text), knownAs(t, s.KnownHosts), "["+strings.Replace(cut.Address, ":", "]:", 1), 1))
	}
	before, after := knownOf(was), knownOf(is)
	c := was.SFTPConfig
	c.Host = cut.Address
	must(t, os.WriteFile(c.KnownHosts, before, 0o644))
	to := open(t, target.Config{Kind: target.KindSFTP, Path: filepath.Join(sample.TempDir(t), "vault"), SFTPConfig: c})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	_, err := to.Put(t.Context(), b)
	must(t, err)
	cut.To(is.Host)
	cut.After(0)
	var down *target.Down
	if _, err := to.Put(t.Context(), b); !errors.As(err, &down) {
		t.Errorf("a put over a connection that is cut: %v", err)
	}
	if _, err := to.Put(t.Context(), b); !errors.As(err, &down) || !strings.Contains(err.Error(), "key mismatch") {
		t.Errorf("a put on a server that has another key now: %v", err)
	}
	key, err := os.ReadFile(is.Key)
	must(t, err, os.WriteFile(c.KnownHosts, after, 0o644), os.WriteFile(c.Key, key, 0o600))
	if _, err := to.Put(t.Context(), b); err != nil {
		t.Errorf("a put once the key is known: %v", err)
	}
}

// Keys of S3 that were refused are read anew: a target that is open goes on with those that stand in the file then.
func TestS3KeysAreRenewed(t *testing.T) {
	s, proxy, c := tampered(t)
	to := open(t, target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: c})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	good, err := os.ReadFile(s.Secrets)
	must(t, err)
	put := func(want string) {
		t.Helper()
		_, err := to.Put(t.Context(), b)
		if down := (*target.Down)(nil); want == "" && err != nil || want != "" && (!errors.As(err, &down) || !strings.Contains(err.Error(), want)) {
			t.Errorf("it is %v, want %q", err, want)
		}
	}
	proxy.Do(func(w http.ResponseWriter, _ *http.Request) bool {
		return targettest.Refuse(w, http.StatusBadRequest, "ExpiredToken")
	})
	put("ExpiredToken")
	proxy.Do(nil)
	must(t, os.WriteFile(s.Secrets, []byte(strings.Replace(string(good), "secretKey: ", "secretKey: not-", 1)), 0o600))
	put("SignatureDoesNotMatch")
	must(t, os.WriteFile(s.Secrets, []byte("secretKey: [hush"), 0o600))
	put("is not YAML with")
	must(t, os.WriteFile(s.Secrets, good, 0o600))
	put("")
}

// A server that takes a connection and says nothing, or takes nothing more, is away after a while; one that is slow is not.
func TestServersThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, its := net.Pipe()
		c := target.Idle(ours)
		defer func() { must(t, c.Close(), its.Close()) }()
		go func() {
			for range 3 {
				time.Sleep(4 * time.Minute)
				_, _ = its.Write([]byte("x")) // slow
			}
		}()
		begin, b := time.Now(), make([]byte, 1)
		for range 3 {
			if _, err := c.Read(b); err != nil {
				t.Fatalf("of a slow server: %v", err)
			}
		}
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) > 20*time.Minute {
			t.Errorf("of one that says nothing: %v after %v", err, time.Since(begin))
		}
		if _, err := c.Write(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("to one that takes nothing: %v", err)
		}
	})
}
