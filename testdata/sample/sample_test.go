package sample

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags"
)

// Every sample must be what it says, or the tests that use it prove nothing.
func TestSamples(t *testing.T) {
	refused := map[string]bags.Rule{
		"parent.zip": bags.RuleParent, "parent.tar": bags.RuleParent,
		"absolute.zip": bags.RuleAbsolute, "absolute.tar": bags.RuleAbsolute,
		"link.tar": bags.RuleSymlink, "hardlink.tar": bags.RuleHardLink, "device.tar": bags.RuleSpecial,
		"duplicate.zip": bags.RuleDuplicate, "duplicate.tar": bags.RuleDuplicate, "conflict.tar": bags.RuleConflict,
		"bomb.zip": bags.RuleRatio, "bomb.tar.gz": bags.RuleRatio,
		"truncated.tar.gz": bags.RuleTruncated, "corrupt.zip": bags.RuleChecksum, "not-a.zip": bags.RuleTruncated,
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

func wantRule(t *testing.T, path string, want bags.Rule) {
	t.Helper()
	format, err := bags.Sniff(path)
	if err == nil && format == bags.None {
		t.Fatal("is no archive")
	}
	if err == nil {
		to := filepath.Join(t.TempDir(), "to")
		if err := os.Mkdir(to, 0o777); err != nil {
			t.Fatal(err)
		}
		_, err = bags.Extract(t.Context(), path, to, bags.ExtractOptions{})
	}
	var broken *bags.Error
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
