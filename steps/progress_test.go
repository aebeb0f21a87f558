package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsTheLastWholeLine(t *testing.T) {
	for _, c := range []struct {
		name, file, note string
		percent          int
		ok               bool
	}{
		{"nothing", "", "", 0, false},
		{"no line end yet", "12%", "", 0, false},
		{"a note", "reading\n", "reading", -1, true},
		{"percent and note", "10% one\n42% page 5 of 12\n", "page 5 of 12", 42, true},
		{"percent alone", "42%\n", "", 42, true},
		{"a part of a percent", "99.9% nearly\n", "nearly", 99, true},
		{"the last line is unfinished", "10% one\n20% tw", "one", 10, true},
		{"an empty line tells nothing", "10% one\n\n", "one", 10, true},
		{"a number without a sign is a note", "3 files left\n", "3 files left", -1, true},
		{"beyond all", "250% much\n", "250% much", -1, true},
		{"no number", "NaN% x\n", "NaN% x", -1, true},
		{"not UTF-8", "1% a\xffb\n", "a\uFFFDb", 1, true},
		{"a long file", strings.Repeat("1% x\n", 100_000) + "2% y\n", "y", 2, true},
		{"a line longer than what is read", strings.Repeat("x", 10_000), "", 0, false},
		{"a long note", strings.Repeat("x", 300) + "\n", strings.Repeat("x", 200) + "…", -1, true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, progressFile), []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		p, ok := ReadProgress(dir)
		if ok != c.ok || ok && (p.Note != c.note || p.Percent != c.percent || p.At.IsZero()) {
			t.Errorf("%s: %+v, %v; want %q, %d, %v", c.name, p, ok, c.note, c.percent, c.ok)
		}
	}
}

// What a robot leaves there may be no file at all, and is never followed.
func TestProgressFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("1% secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, progressFile)); err != nil {
		t.Fatal(err)
	}
	if p, ok := ReadProgress(dir); ok {
		t.Errorf("read %+v through a link", p)
	}
	if err := TellProgress(dir, Progress{Note: "x"}); err == nil {
		t.Error("wrote through a link")
	}
}

func TestProgressDoesNotGrow(t *testing.T) {
	dir := t.TempDir()
	for i := range 3000 {
		if err := TellProgress(dir, Progress{Note: strings.Repeat("long\n", 10), Percent: i % 101}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, progressFile))
	if err != nil || info.Size() > maxProgressFile+1000 {
		t.Fatalf("%v, %v", info.Size(), err)
	}
	if p, ok := ReadProgress(dir); !ok || p.Percent != 2999%101 || p.Note != strings.TrimSpace(strings.Repeat("long ", 10)) {
		t.Errorf("%+v, %v", p, ok)
	}
}

// The bytes of a built-in robot are told below its scratch folder, and nowhere without one.
func TestBytesAreToldInScratch(t *testing.T) {
	for _, scratch := range []string{"", t.TempDir()} {
		t.Chdir(t.TempDir())
		synctest.Test(t, func(t *testing.T) {
			c := &Call{Folders: Folders{Scratch: scratch}}
			stop := TellBytes(c)
			if c.Progress != nil {
				c.Progress(40, 100)
			}
			time.Sleep(tellEvery + time.Millisecond)
			stop()
		})
		if p, ok := ReadProgress(scratch); ok != (scratch != "") || ok && p.Percent != 40 {
			t.Errorf("told below %q: %+v, %v", scratch, p, ok)
		}
	}
}
