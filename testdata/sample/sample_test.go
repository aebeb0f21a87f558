package sample

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/files"
)

// Every sample must be what it says, or the tests that use it prove nothing.
func TestSamples(t *testing.T) {
	refused := map[string]files.Rule{
		"parent.zip": files.RuleParent, "parent.tar": files.RuleParent,
		"absolute.zip": files.RuleAbsolute, "absolute.tar": files.RuleAbsolute,
		"link.tar": files.RuleSymlink, "hardlink.tar": files.RuleHardLink, "device.tar": files.RuleSpecial,
		"duplicate.zip": files.RuleDuplicate, "duplicate.tar": files.RuleDuplicate, "conflict.tar": files.RuleConflict,
		"bomb.zip": files.RuleRatio, "bomb.tar.gz": files.RuleRatio,
		"truncated.tar.gz": files.RuleTruncated, "corrupt.zip": files.RuleChecksum, "not-a.zip": files.RuleTruncated,
	}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), s.File)
			if err := s.Make(path); err != nil {
				t.Fatal(err)
			}
			if rule, bad := refused[s.Name]; bad {
				wantRule(t, path, rule)
			}
			if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
				t.Errorf("made %d things", len(names))
			}
			if err := s.Make(path); err == nil {
				t.Error("wrote over what was there")
			}
		})
	}
}

func wantRule(t *testing.T, path string, want files.Rule) {
	t.Helper()
	format, err := archive.Sniff(path)
	if err == nil && format == archive.None {
		t.Fatal("is no archive")
	}
	if err == nil {
		to := filepath.Join(t.TempDir(), "to")
		if err := os.Mkdir(to, 0o777); err != nil {
			t.Fatal(err)
		}
		_, err = archive.Extract(t.Context(), path, to, archive.ExtractOptions{})
	}
	var broken *files.Error
	if !errors.As(err, &broken) || broken.Rule != want {
		t.Errorf("error %v, want rule %s", err, want)
	}
}

func TestBags(t *testing.T) {
	for name, want := range map[string]bool{"bag": true, "bag-wrong-digest": false, "bag-incomplete": false} {
		dir := filepath.Join(t.TempDir(), "bag")
		s, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Make(dir); err != nil {
			t.Fatal(err)
		}
		r, err := bags.Validate(t.Context(), dir, bags.ValidateOptions{})
		if err != nil || r.Valid != want {
			t.Errorf("%s: valid %v, want %v; %v", name, r.Valid, want, err)
		}
	}
}
