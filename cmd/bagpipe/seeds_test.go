package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSeedsNamesTestsThatExist wants every row of docs/seeds.md whole, and every test that it names.
func TestSeedsNamesTestsThatExist(t *testing.T) {
	data, err := os.ReadFile("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(data)) {
		row, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !isRow || strings.HasPrefix(row, "demand |") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		if len(cells) != 3 || !regexp.MustCompile(`^[UWISA][0-9]+.*: .`).MatchString(cells[0]) || slices.Contains(cells, "") {
			t.Errorf("docs/seeds.md: want a demand with its lines, where it is built or why not, and a test or none: %s", line)
			continue
		}
		tests := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		if why := cells[1]; len(tests) == 0 && (cells[2] != "none" || !strings.HasPrefix(why, "not ")) {
			t.Errorf("docs/seeds.md: want a test, or none and why not: %s", line)
		}
		for _, m := range tests {
			named++
			if !testExists(t, m[1]) {
				t.Errorf("docs/seeds.md: there is no test %s", m[1])
			}
		}
	}
	if named < 300 {
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
