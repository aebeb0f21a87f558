package target_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// TestCutAtBytes cuts the connection of a put in the middle, at many a byte. The put ends, or the
// target is down; the next one makes a sound copy.
func TestCutAtBytes(t *testing.T) {
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run("sftp/"+form, func(t *testing.T) {
			t.Parallel()
			s := targettest.NewSFTP(t)
			cut := targettest.NewCut(t, s.Host)
			known, err := os.ReadFile(s.KnownHosts)
			must(t, err)
			must(t, os.WriteFile(s.KnownHosts, []byte(strings.Replace(string(known), knownAs(t, s.KnownHosts), "["+strings.Replace(cut.Address, ":", "]:", 1), 1)), 0o644))
			s.Host = cut.Address
			cutEach(t, cut, func(k int64) target.Config {
				return target.Config{Kind: target.KindSFTP, Layout: form, Path: fmt.Sprintf("%s/%d", t.TempDir(), k), SFTPConfig: s.SFTPConfig}
			})
		})
		t.Run("s3/"+form, func(t *testing.T) {
			t.Parallel()
			s := targettest.NewS3(t, false)
			cut := targettest.NewCut(t, strings.TrimPrefix(s.Endpoint, "http://"))
			s.Endpoint = "http://" + cut.Address
			cutEach(t, cut, func(k int64) target.Config {
				c := target.Config{Kind: target.KindS3, Layout: form, Secrets: s.Secrets, S3Config: s.S3Config}
				c.Prefix = fmt.Sprintf("k%d/", k)
				return c
			})
		})
	}
}

// cutEach puts a bag whole to see how many bytes go, then cuts puts and checks at twenty-five places, in short tests at eight.
func cutEach(t *testing.T, cut *targettest.Cut, config func(k int64) target.Config) {
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "d/b": strings.Repeat("B", 100_000)})
	to := open(t, config(0))
	cut.After(-1)
	_, err := to.Put(t.Context(), b)
	must(t, err)
	whole := cut.Went()
	places := int64(25)
	if testing.Short() {
		places = 8
	}
	for k := int64(1); k <= places; k++ {
		to := open(t, config(k))
		cut.After(whole * k / (places + 1))
		_, err := to.Put(t.Context(), b)
		var down *target.Down
		if err != nil && !errors.As(err, &down) {
			t.Errorf("cut at byte %d of %d: %v", whole*k/(places+1), whole, err)
		}
		cut.After(-1)
		c, err := to.Put(t.Context(), b)
		if err != nil {
			t.Fatalf("cut at byte %d of %d: the next put: %v", whole*k/(places+1), whole, err)
		}
		cut.After(-1)
		if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
			t.Errorf("cut at byte %d of %d: %v", whole*k/(places+1), whole, err)
		}
		cut.After(cut.Went() * k / (places + 1)) // a check that is cut says nothing of the copy
		if _, _, err := to.Check(t.Context(), c, target.Read); err != nil && !errors.As(err, &down) {
			t.Errorf("a check that was cut (%d of %d): %v", k, places, err)
		}
	}
}
