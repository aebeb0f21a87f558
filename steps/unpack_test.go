package steps

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
)

func TestUnpackSaysWhyItDidNot(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"diaries", map[string]string{"a": "A"}, "not applicable: a folder is no archive"},
		{"one.txt", map[string]string{"": "text"}, "not applicable: one.txt is no archive"},
	} {
		it := newItem(t, c.name, c.files)
		r, err := it.run("unpack")
		if err != nil || r.Status != Skipped || r.Message != c.want {
			t.Errorf("%+v, %v; want skipped, %q", r, err, c.want)
		}
	}
}

func TestUnpackLinksAFolder(t *testing.T) {
	it := newItem(t, "diaries", map[string]string{"d/a": "A"})
	it.pass("unpack")
	a, err := os.Stat(filepath.Join(it.dir, "source/diaries/d/a"))
	must(t, err)
	b, err := os.Stat(filepath.Join(it.dir, "content/d/a"))
	must(t, err)
	if !os.SameFile(a, b) {
		t.Error("content is a copy where a link would do")
	}
}

func TestUnpackRefusesWhatIsHostileOrDamaged(t *testing.T) {
	whole := tarFile(t, map[string]string{"scan-7.tif": string(make([]byte, 5000))})
	for _, c := range []struct {
		name, data string
		parts      []string
	}{
		{"evil.zip", zipFile(t, map[string]string{"../evil": "x"}), []string{"evil.zip", "../evil", string(files.RuleParent)}},
		{"cut.tar", whole[:2000], []string{"cut.tar", "scan-7.tif", string(files.RuleTruncated)}},
		{"empty.zip", "", []string{"empty.zip", string(files.RuleTruncated)}},
	} {
		it := newItem(t, c.name, map[string]string{"": c.data})
		before := it.state()
		_, err := it.run("unpack")
		wantFailure(t, err, Content, c.parts...)
		if it.state() != before {
			t.Errorf("%s: the item changed", c.name)
		}
	}
}

func TestUnpackRefusesLinksAndSpecialFilesInAFolder(t *testing.T) {
	it := newItem(t, "diaries", map[string]string{"a": "A"})
	must(t, os.Symlink("/etc/passwd", filepath.Join(it.dir, "source/diaries/link")))
	_, err := it.run("unpack")
	wantFailure(t, err, Content, "link", string(files.RuleSymlink))

	it = newItem(t, "diaries", map[string]string{"a": "A"})
	must(t, syscall.Mkfifo(filepath.Join(it.dir, "source/diaries/pipe"), 0o644))
	_, err = it.run("unpack")
	wantFailure(t, err, Content, "pipe", string(files.RuleSpecial))
}

func TestUnpackKeepsLimits(t *testing.T) {
	it := newItem(t, "x.zip", map[string]string{"": zipFile(t, map[string]string{"a": "12345"})})
	c := it.call()
	c.Limits = archive.Limits{Bytes: 4}
	_, err := Builtins()["unpack"].Robot.Run(t.Context(), c)
	wantFailure(t, err, Content, string(files.RuleBytes))
}
