package live

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheRobotsInTheDocsWork does an item with each robot of docs/robots.md.
func TestTheRobotsInTheDocsWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/robots.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"sh", "python", "go"} {
		t.Run(language, func(t *testing.T) {
			_, rest, ok := strings.Cut(string(page), "\n```"+language+"\n")
			code, _, ended := strings.Cut(rest, "\n```\n")
			if !ok || !ended {
				t.Fatalf("docs/robots.md has no robot in %s", language)
			}
			f := newFixture(t, "")
			file := filepath.Join(f.dir, "robot."+language)
			if err := os.WriteFile(file, []byte(code+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			switch language {
			case "sh":
				f.spec.Argv = []string{"/bin/sh", file}
			case "python":
				python, err := exec.LookPath("python3")
				if err != nil {
					t.Skip(err)
				}
				f.spec.Argv = []string{python, file}
			case "go":
				f.spec.Argv = []string{filepath.Join(f.dir, "robot")}
				if out, err := exec.Command("go", "build", "-o", f.spec.Argv[0], file).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			single := filepath.Join(f.dir, "page.tif") // a single file in a catalog
			if err := os.WriteFile(single, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			one, _ := f.call(t, "pages", nil)
			one.Content = single
			if res, err := f.Run(t.Context(), f.spec, one); err != nil || res.Metadata["files"] != 1.0 {
				t.Errorf("of a single file: %+v, %v", res, err)
			}
			for range 2 {
				c, _ := f.call(t, "pages", nil)
				c.Content = filepath.Join(f.dir, "content")
				for _, name := range []string{"a", "b"} {
					if err := os.MkdirAll(filepath.Join(c.Content, name), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(c.Content, name, "page"), nil, 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if res, err := f.Run(t.Context(), f.spec, c); err != nil || res.Metadata["files"] != 2.0 {
					t.Errorf("%+v, %v", res, err)
				}
			}
		})
	}
}
