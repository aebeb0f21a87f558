package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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

// systemd finds nothing to say against the unit.
func TestTheUnitIsSound(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	unit, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("bagpipe")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bagpipe.service")
	if err := os.WriteFile(file, []byte(strings.Replace(string(unit), "ExecStart=/usr/bin/bagpipe ", "ExecStart="+program+" ", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "bagpipe") {
		t.Errorf("%v: %s", err, out)
	}
}

// man shows the manual page without a warning, on a narrow terminal, too.
func TestTheManualPageIsShown(t *testing.T) {
	if _, err := exec.LookPath("man"); err != nil {
		t.Skip("no man")
	}
	dir := t.TempDir()
	if out, err := exec.Command("bagpipe", "man", "--to", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for page, wants := range map[string][]string{
		"bagpipe.1":            {"bagpipe run", "bagpipe fixity run", "EXIT STATUS", "--watch"},
		"bagpipe-run.1":        {"steps that are", "--watch", "SEE ALSO"},
		"bagpipe-fixity.1":     {"bagpipe fixity run", "--sample"},
		"bagpipe-deposit.1":    {"--to"},
		"bagpipe-workflow.1":   {"bagpipe workflow check"},
		"bagpipe-completion.1": {"bagpipe completion <shell>"},
	} {
		cmd := exec.Command("man", "--warnings", "-l", filepath.Join(dir, page))
		cmd.Env = append(os.Environ(), "MANWIDTH=72", "MANPAGER=cat", "LC_ALL=C.UTF-8")
		var shown, wrong strings.Builder
		cmd.Stdout, cmd.Stderr = &shown, &wrong
		if err := cmd.Run(); err != nil || wrong.Len() > 0 {
			t.Errorf("man %s: %v: %s", page, err, wrong.String())
		}
		for _, want := range wants {
			if !strings.Contains(shown.String(), want) {
				t.Errorf("%s has no %q:\n%.3000s", page, want, shown.String())
			}
		}
	}
}

// The Debian package is installed into a root of its own, works there, and leaves nothing
// when it is removed. make dist makes one, which takes minutes.
func TestThePackageInstalls(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("not root on Debian")
	}
	packages, err := filepath.Glob("../../dist/bagpipe_*_" + runtime.GOARCH + ".deb")
	if err != nil || len(packages) == 0 {
		t.Skip("no package in dist/: make dist")
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	does := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", program, args, err, out)
		}
		return string(out)
	}
	does("dpkg", "--root="+root, "--log=/dev/null", "-i", packages[0])
	for _, file := range []string{"usr/bin/bagpipe", "usr/share/man/man1/bagpipe.1", "usr/share/man/man1/bagpipe-run.1", "lib/systemd/system/bagpipe.service", "usr/share/bash-completion/completions/bagpipe",
		"usr/share/zsh/vendor-completions/_bagpipe", "usr/share/fish/vendor_completions.d/bagpipe.fish", "usr/share/doc/bagpipe/README.md", "usr/share/doc/bagpipe/examples/bagpipe.yaml",
		"usr/share/doc/bagpipe/examples/monitoring/alerts.yaml", "usr/share/doc/bagpipe/examples/monitoring/dashboard.json"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
	archive := filepath.Join(t.TempDir(), "archive")
	does("chroot", root, "/usr/bin/bagpipe", "version") // needs no library
	does(filepath.Join(root, "usr/bin/bagpipe"), "init", archive)
	does(filepath.Join(root, "usr/bin/bagpipe"), "check", archive)
	does("dpkg", "--root="+root, "--log=/dev/null", "--purge", "bagpipe")
	for _, dir := range []string{"usr", "lib", "etc"} {
		if left, err := filepath.Glob(filepath.Join(root, dir, "*", "*bagpipe*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
