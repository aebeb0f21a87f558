package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// floors is the house of DESIGN.md §4: a package imports only from floors below its own,
// and packages on one floor do not import each other.
var floors = map[string]int{
	"bagpipe/cmd/bagpipe": 11,
	"bagpipe/engine":      10,
	"bagpipe/engine/web":  9, "bagpipe/engine/web/access": 8, "bagpipe/engine/remote": 9, "bagpipe/engine/worker": 4, "bagpipe/engine/client": 4, "bagpipe/engine/remote/bus": 4, "bagpipe/engine/remote/wire": 3, "bagpipe/engine/alert": 9, "bagpipe/engine/notices": 9, "bagpipe/engine/metrics": 9,
	"bagpipe/engine/ask": 8, "bagpipe/engine/feed": 8, "bagpipe/engine/schedule": 8, "bagpipe/engine/catalog": 8, "bagpipe/engine/reader": 8,
	"bagpipe/engine/delivery": 8, "bagpipe/engine/sync": 8, "bagpipe/engine/audit": 7, "bagpipe/engine/export": 8, "bagpipe/engine/atlas": 8, "bagpipe/engine/search": 8, "bagpipe/engine/fixity": 8, "bagpipe/engine/doctor": 8, "bagpipe/engine/disposal": 8,
	"bagpipe/engine/act": 7, "bagpipe/engine/intake": 7, "bagpipe/engine/attempt": 7,
	"bagpipe/engine/index": 6, "bagpipe/engine/handover": 6, "bagpipe/engine/intake/recognition": 6, "bagpipe/engine/intake/identity": 6, "bagpipe/engine/intake/sidecar": 6,
	"bagpipe/engine/settings": 5, "bagpipe/engine/guard": 5, "bagpipe/engine/control": 5,
	"bagpipe/engine/ledger": 4, "bagpipe/engine/warrant": 4, "bagpipe/engine/folder": 4,
	"bagpipe/engine/gitstore": 3, "bagpipe/engine/queue": 3, "bagpipe/engine/claim": 3, "bagpipe/engine/inbox": 3,
	"bagpipe/engine/recognise": 3, "bagpipe/engine/runner": 3, "bagpipe/engine/mounted": 3, "bagpipe/engine/timetable": 3, "bagpipe/engine/audience": 3, "bagpipe/engine/notice": 4, "bagpipe/engine/query": 3, "bagpipe/engine/stac": 4, "bagpipe/engine/tags": 4, "bagpipe/engine/roots": 3,
	"bagpipe/engine/state": 2, "bagpipe/steps": 2,
	"bagpipe/bags": 1, "bagpipe/engine/condition": 1, "bagpipe/engine/fault": 1, "bagpipe/engine/trust": 1,
	"bagpipe/layout": 0, "bagpipe/templates": 0,
}

// parts are packages that stand on one floor and may be used by one another:
// layout/disk and layout/deflate are layout's, and an internal package is its parent's.
var parts = map[string]string{"bagpipe/layout/disk": "bagpipe/layout", "bagpipe/layout/disk/faultfs": "bagpipe/layout", "bagpipe/layout/deflate": "bagpipe/layout",
	"bagpipe/bags/fetch": "bagpipe/bags", "bagpipe/bags/profile": "bagpipe/bags", "bagpipe/bags/archive": "bagpipe/bags",
	"bagpipe/steps/form": "bagpipe/steps", "bagpipe/steps/live": "bagpipe/steps", "bagpipe/steps/target": "bagpipe/steps", "bagpipe/steps/target/targettest": "bagpipe/steps",
	"bagpipe/bags/tagfile": "bagpipe/bags", "bagpipe/bags/confined": "bagpipe/bags", "bagpipe/steps/decoder": "bagpipe/steps", "bagpipe/steps/formats": "bagpipe/steps",
	"bagpipe/steps/raster": "bagpipe/steps", "bagpipe/steps/space": "bagpipe/steps", "bagpipe/steps/describe": "bagpipe/steps", "bagpipe/steps/views": "bagpipe/steps", "bagpipe/steps/clamd": "bagpipe/steps",
	"bagpipe/bags/finding": "bagpipe/bags", "bagpipe/bags/files": "bagpipe/bags"}

// stairs order the packages of one floor: a package imports only from steps below its own.
var stairs = map[string]int{
	"bagpipe/bags/fetch": 8, "bagpipe/bags": 7, "bagpipe/bags/profile": 6, "bagpipe/bags/archive": 5,
	"bagpipe/bags/archive/internal/child": 4,
	"bagpipe/bags/archive/internal/rars":  3, "bagpipe/bags/archive/internal/sevens": 3, "bagpipe/bags/archive/internal/tars": 3, "bagpipe/bags/archive/internal/zips": 3,
	"bagpipe/bags/archive/internal/compress": 2,
	"bagpipe/bags/archive/internal/codepage": 1, "bagpipe/bags/archive/internal/frames": 1, "bagpipe/bags/archive/internal/notes": 1, "bagpipe/bags/archive/internal/volume": 1,
	"bagpipe/bags/confined": 0, "bagpipe/bags/tagfile": 1, "bagpipe/bags/files": 0, "bagpipe/bags/finding": 0,
}

// single are the modules that one package alone imports.
var single = map[string]string{
	"github.com/nats-io/":           "bagpipe/engine/remote/bus",
	"github.com/go-git/":            "bagpipe/engine/gitstore",
	"github.com/rjeczalik/notify":   "bagpipe/engine/inbox",
	"github.com/alecthomas/kong":    "bagpipe/cmd/bagpipe",
	"github.com/minio/minio-go/":    "bagpipe/steps/target",
	"github.com/pkg/sftp":           "bagpipe/steps/target",
	"github.com/srerickson/ocfl-go": "bagpipe/steps/target",
	"modernc.org/":                  "bagpipe/engine/search",
}

// forbidden are the modules that were tried and rejected.
var forbidden = []string{"github.com/mholt/archives", "github.com/ulikunitz/xz", "github.com/minio/sha256-simd",
	"github.com/robfig/cron", "gopkg.in/yaml.v3", "github.com/go-git/go-git/v6", "github.com/disintegration/imaging",
	"github.com/stretchr/testify"}

type goPackage struct {
	ImportPath, Name                   string
	Dir                                string
	Imports, TestImports, XTestImports []string
	CgoFiles                           []string
}

// house lists the packages of this module by go list, so that what is checked is
// what is built.
func house(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Imports,TestImports,XTestImports,CgoFiles", "bagpipe/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list names %d packages", len(all))
	}
	return all
}

// owner is the package whose part this is.
func owner(p string) string {
	p, _, _ = strings.Cut(p, "/internal/")
	if whole, ok := parts[p]; ok {
		return whole
	}
	return p
}

func TestImportsPointDownward(t *testing.T) {
	for _, p := range house(t) {
		from, ok := floors[owner(p.ImportPath)]
		if !ok {
			t.Errorf("%s is on no floor of the house; give it one", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			step, onStairs := stairs[i]
			if here, ok := stairs[p.ImportPath]; ok && onStairs && step >= here {
				t.Errorf("%s (step %d) imports %s (step %d)", p.ImportPath, here, i, step)
			}
			if !strings.HasPrefix(i, "bagpipe/") || owner(i) == owner(p.ImportPath) {
				continue
			}
			to, ok := floors[owner(i)]
			if !ok || to >= from {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.ImportPath, from, i, to)
			}
		}
	}
}

func TestSingleImporters(t *testing.T) {
	for _, p := range house(t) {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for module, only := range single {
				if strings.HasPrefix(i, module) && owner(p.ImportPath) != only && p.ImportPath != only && !strings.HasPrefix(p.ImportPath, only+"/") {
					t.Errorf("%s imports %s, which is %s's alone", p.ImportPath, i, only)
				}
			}
		}
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s uses cgo: %v", p.ImportPath, p.CgoFiles)
		}
	}
}

// Every package has a doc.go with what it owns and what it must not know.
func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	for _, p := range house(t) {
		data, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		text := strings.ReplaceAll(string(data), "\n// ", " ")
		for _, want := range []string{"own", "must not"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s/doc.go does not hold %q", p.ImportPath, want)
			}
		}
	}
}

func TestForbiddenModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not .Indirect}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	for direct := range strings.Lines(string(out)) {
		for _, f := range forbidden {
			if strings.HasPrefix(strings.TrimSpace(direct), f) {
				t.Errorf("go.mod requires %s, which is not to be used", f)
			}
		}
	}
}

// machinePath is an absolute path of somebody's machine, other than that of the
// archivist in the documentation's examples.
var machinePath = regexp.MustCompile(`(?m)(?:^|[\s"'=(\x60])/(?:work\b|root|home/[a-z]|Users/[A-Za-z]|tmp/[a-z])[\w/.-]*`)

// atTheTop is all that stands at the top of the project.
var atTheTop = strings.Fields(".ci .gitignore CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md bags cmd docs engine go.mod go.sum layout steps templates testdata")

func TestNothingElseIsTrackedAtTheTop(t *testing.T) {
	for _, name := range tracked(t, moduleRoot(t)) {
		if top, _, _ := strings.Cut(name, "/"); !slices.Contains(atTheTop, top) {
			t.Errorf("%s is tracked by Git, and is none of %v", name, atTheTop)
		}
	}
}

// tracked lists the files in Git's index.
func tracked(t *testing.T, root string) (names []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not in a Git checkout: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
}

func TestNoMachinesPathInATrackedFile(t *testing.T) {
	root := moduleRoot(t)
	for _, name := range tracked(t, root) {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || name == "go.sum" || strings.HasPrefix(name, "testdata/content/") {
			continue // removed but not committed yet, or not of our writing
		}
		for _, found := range machinePath.FindAllString(string(data), -1) {
			if !strings.Contains(found, "/home/archivist") {
				t.Errorf("%s names a machine's path: %s", name, found)
			}
		}
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
