package target_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// The same to an upload in parts: a part that is altered on its way, or refused, is sent again alone; where the completion is refused, what
// stands there is compared.
func TestS3FaultsOfParts(t *testing.T) {
	t.Parallel()
	s, proxy, config := tampered(t)
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": strings.Repeat("0123456789abcdef", 5<<20)}) // two parts
	other := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": strings.Repeat("another's", 9<<20)})
	part := func(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.Query().Has("partNumber") }
	end := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	altered := func(r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err == nil && len(data) > 0 {
			data[len(data)/2] ^= 1
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
	}
	first := func(is func(*http.Request) bool, n int64, do func(w http.ResponseWriter, r *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		var count atomic.Int64
		return func(w http.ResponseWriter, r *http.Request) bool { return is(r) && count.Add(1) <= n && do(w, r) }
	}
	refused := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { return targettest.Refuse(w, status, code) }
	}
	for _, c := range []struct {
		name string
		do   func(to target.Target) func(http.ResponseWriter, *http.Request) bool
		want string // of what is said; "": the put succeeds
		lost bool   // another's bag stands there
	}{
		{"altered", func(target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(part, 1, func(_ http.ResponseWriter, r *http.Request) bool { altered(r); return false })
		}, "any", false},
		{"503", func(target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(part, 2, refused(503, "SlowDown"))
		}, "", false},
		{"503 at the end", func(target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(end, 2, refused(503, "SlowDown"))
		}, "", false},
		{"409", func(target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(end, 1, refused(409, "ConditionalRequestConflict"))
		}, "ConditionalRequestConflict", false},
		{"412 of nothing", func(target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(end, 1, refused(412, "PreconditionFailed"))
		}, "was refused as if it were there", false},
		{"412 of the same", func(to target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(end, 1, func(http.ResponseWriter, *http.Request) bool {
				proxy.Do(nil)
				_, err := to.Put(t.Context(), b)
				must(t, err)
				return false
			})
		}, "", false},
		{"412 of another", func(to target.Target) func(http.ResponseWriter, *http.Request) bool {
			return first(end, 1, func(http.ResponseWriter, *http.Request) bool {
				proxy.Do(nil)
				_, err := to.Put(t.Context(), other)
				must(t, err)
				return false
			})
		}, "another payload stands in its place", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := config
			own.Prefix = strings.ReplaceAll(c.name, " ", "-")
			proxy.Do(nil)
			to := open(t, target.Config{Kind: target.KindS3, Layout: target.LayoutTar, Secrets: s.Secrets, S3Config: own})
			late := open(t, target.Config{Kind: target.KindS3, Layout: target.LayoutTar, Secrets: s.Secrets, S3Config: own})
			proxy.Do(c.do(late))
			_, err := to.Put(t.Context(), b)
			var down *target.Down
			if c.want == "" && err != nil || c.want != "" && c.want != "any" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && !c.lost && !errors.As(err, &down) {
				t.Errorf("the put: %v", err)
			}
			proxy.Do(nil)
			bag := b
			if c.lost {
				bag = other
			}
			made, err := to.Put(t.Context(), bag)
			must(t, err)
			if _, _, err := to.Check(t.Context(), made, target.Read); err != nil {
				t.Errorf("the copy: %v", err)
			}
			for u := range s.Client.ListIncompleteUploads(t.Context(), s.Bucket, own.Prefix, true) {
				t.Errorf("an upload is left: %+v", u)
			}
		})
	}
}

// Of all that go on at once on a target no more files are sent and read at the same time than streams: says.
func TestStreamsAreOfTheTarget(t *testing.T) {
	t.Parallel()
	s, proxy, config := tampered(t)
	to := open(t, target.Config{Kind: target.KindS3, Streams: 2, Secrets: s.Secrets, S3Config: config})
	var now, most atomic.Int64
	proxy.Do(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut && (r.Method != http.MethodGet || r.URL.RawQuery != "") {
			return false
		}
		n := now.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		time.Sleep(5 * time.Millisecond) // the others come meanwhile
		now.Add(-1)
		return false
	})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": strings.Repeat("a", 200_000), "b": strings.Repeat("b", 200_000), "c": strings.Repeat("c", 200_000)})
	var all errgroup.Group
	for version := 1; version <= 5; version++ {
		all.Go(func() error {
			own := b
			own.Version = version
			c, err := to.Put(t.Context(), own)
			if err == nil {
				_, _, err = to.Check(t.Context(), c, target.Read)
			}
			return err
		})
	}
	must(t, all.Wait())
	if most.Load() != 2 {
		t.Errorf("%d files at once, want 2", most.Load())
	}
}
