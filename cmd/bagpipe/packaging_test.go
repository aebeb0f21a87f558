package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const unitFile = "../../testdata/packaging/bagpipe.service"

// The unit that is packaged is the one that the documentation shows, and leaves the service
// little of the machine.
func TestTheUnitIsTheDocumentedOne(t *testing.T) {
	unit, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "```ini\n"+string(unit)+"```\n") {
		t.Error("docs/operations.md shows another unit than testdata/packaging has")
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", unitFile).CombinedOutput()
	if err != nil {
		t.Skipf("systemd-analyze: %v: %s", err, out)
	}
	level := regexp.MustCompile(`exposure level for bagpipe.service: ([0-9.]+)`).FindSubmatch(out)
	if level == nil {
		t.Fatalf("%s", out)
	}
	if n, err := strconv.ParseFloat(string(level[1]), 64); err != nil || n >= 3 {
		t.Errorf("exposure level %s, want less than 3", level[1])
	}
}
