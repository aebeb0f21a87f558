package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

func hexOf(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

func TestDigest(t *testing.T) {
	dir := t.TempDir()
	writeAt(t, dir+"/b/z.txt", "zz")
	writeAt(t, dir+"/a.txt", "a")
	writeAt(t, dir+"/a/b", "")
	writeAt(t, dir+"/new\nline\tand \xff", "odd")
	if err := os.MkdirAll(dir+"/hollow", 0o755); err != nil {
		t.Fatal(err)
	}
	// By bytes: '.' comes before '/'.
	lines := "a.txt\t1\t" + hexOf("a") + "\n" +
		"a/b\t0\t" + hexOf("") + "\n" +
		"b/z.txt\t2\t" + hexOf("zz") + "\n" +
		"new%0Aline%09and %FF\t3\t" + hexOf("odd") + "\n"
	want := Sum{Digest: "sha256:" + hexOf(lines), Files: 4, Bytes: 6}
	got, err := Digest(context.Background(), dir)
	if err != nil || got != want {
		t.Errorf("Digest = %+v, %v; want %+v", got, err, want)
	}
	files := map[string]layout.InventoryFile{"a.txt": {Size: 1, SHA256: hexOf("a")}, "a/b": {SHA256: hexOf("")}, "b/z.txt": {Size: 2, SHA256: hexOf("zz")},
		"new%0Aline%09and %FF": {Size: 3, SHA256: hexOf("odd")}}
	if got, err := SumOf(&layout.Inventory{Files: files}); err != nil || got != want {
		t.Errorf("SumOf = %+v, %v; want %+v", got, err, want)
	}
	moved := filepath.Join(t.TempDir(), "other name")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if got, err := Digest(context.Background(), moved); err != nil || got != want {
		t.Errorf("under another name: %+v, %v", got, err)
	}
	file, err := Digest(context.Background(), moved+"/b/z.txt")
	if err != nil || file != (Sum{Digest: "sha256:" + hexOf("zz"), Files: 1, Bytes: 2}) {
		t.Errorf("of a file: %+v, %v", file, err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if got, err := content.CopyTree(context.Background(), moved, copied); err != nil || got != want {
		t.Errorf("of a copy as read: %+v, %v", got, err)
	}
	if got, err := Digest(context.Background(), copied); err != nil || got != want {
		t.Errorf("of a copy as written: %+v, %v", got, err)
	}
}

// Files that are hashed side by side give what they give one by one: a large one among small
// ones, and many.
func TestDigestSideBySide(t *testing.T) {
	dir, lines := t.TempDir(), ""
	var want Sum
	for n := range 40 {
		text := strings.Repeat(fmt.Sprint(n%10), n)
		if n == 7 {
			text = strings.Repeat("large", 50_000)
		}
		name := fmt.Sprintf("%03d", n)
		writeAt(t, filepath.Join(dir, name), text)
		lines += fmt.Sprintf("%s\t%d\t%s\n", name, len(text), hexOf(text))
		want.Files, want.Bytes = want.Files+1, want.Bytes+int64(len(text))
	}
	want.Digest = "sha256:" + hexOf(lines)
	if got, err := Digest(context.Background(), dir); err != nil || got != want {
		t.Errorf("Digest = %+v, %v; want %+v", got, err, want)
	}
}

func TestDigestOpensNoSpecials(t *testing.T) {
	dir := t.TempDir()
	writeAt(t, dir+"/in/file", "x")
	if err := errors.Join(unix.Mkfifo(dir+"/in/pipe", 0o644), unix.Mkfifo(dir+"/pipe", 0o644), os.Symlink("in", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	for path, rule := range map[string]string{dir + "/in": content.RuleSpecial, dir + "/pipe": content.RuleSpecial, dir + "/link": content.RuleLink} {
		_, err := Digest(context.Background(), path)
		var bad *BadError
		if !errors.As(err, &bad) || bad.Rule != rule {
			t.Errorf("Digest(%s) = %v, want rule %s", filepath.Base(path), err, rule)
		}
		if _, err := content.CopyTree(context.Background(), path, filepath.Join(t.TempDir(), "x")); !errors.As(err, &bad) || bad.Rule != rule {
			t.Errorf("copyTree(%s) = %v, want rule %s", filepath.Base(path), err, rule)
		}
	}
	if _, err := Digest(context.Background(), dir+"/missing"); !errors.Is(err, ErrGone) {
		t.Errorf("Digest of nothing = %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Digest(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("Digest = %v, want it cancelled", err)
	}
}

func BenchmarkDigest(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 4096), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(1000 * 4096)
	for b.Loop() {
		if _, err := Digest(context.Background(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
