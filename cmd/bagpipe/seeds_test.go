package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSeedsNamesTestsThatExist wants every test that docs/seeds.md names.
func TestSeedsNamesTestsThatExist(t *testing.T) {
	data, err := os.ReadFile("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !regexp.MustCompile(`^ [UWISA][0-9 ]`).MatchString(cells[1]) {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			named++
			if !testExists(t, m[1]) {
				t.Errorf("docs/seeds.md: there is no test %s", m[1])
			}
		}
	}
	if named < 60 {
		t.Errorf("docs/seeds.md names %d tests; the table was not read", named)
	}
}

// testExists looks for SCRIPT.txtar, or FOLDER.TestNAME.
func testExists(t *testing.T, name string) bool {
	if strings.HasSuffix(name, ".txtar") {
		_, err := os.Stat(filepath.Join("testdata/script", name))
		return err == nil
	}
	dir, function, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), "func "+function+"(") {
			return true
		}
	}
	return false
}
