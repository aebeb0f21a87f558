package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// size is one package's measures. Test files are not measured.
type size struct {
	files    int // files
	methods  int // methods of the type with the most
	fields   int // fields of the struct with the most
	circle   int // files of the largest circle, see circles
	contexts int // struct fields that hold a context.Context
}

// most is the largest size of a package without a row in ratchet.
var most = size{files: 30, methods: 30, fields: 15, circle: 12}

// ratchet holds the packages larger than most, each with its present size. A figure may
// only fall; a row is deleted once the package is within most.
var ratchet = map[string]size{
	"bagpipe/engine/inbox": {files: 30, methods: 52, fields: 15, circle: 12, contexts: 0},
	"bagpipe/engine/queue": {files: 30, methods: 46, fields: 15, circle: 12, contexts: 0},
	"bagpipe/engine/state": {files: 30, methods: 50, fields: 15, circle: 12, contexts: 0},
}

// dimensions names the figures of a size, in the order of the printed table.
var dimensions = []struct {
	name string
	of   func(size) int
}{
	{"files", func(s size) int { return s.files }},
	{"methods", func(s size) int { return s.methods }},
	{"fields", func(s size) int { return s.fields }},
	{"circle", func(s size) int { return s.circle }},
	{"contexts", func(s size) int { return s.contexts }},
}

// TestHouseSizes compares every package with its row of ratchet, or with most. With -v
// it prints the sizes of all packages, and the files of circles that are too large.
func TestHouseSizes(t *testing.T) {
	t.Logf("%-40s %8s %8s %8s %8s %8s", "package", "files", "methods", "fields", "circle", "contexts")
	seen := map[string]bool{}
	for _, p := range loadHouse(t) {
		seen[p.PkgPath] = true
		got, notes := measure(p)
		t.Logf("%-40s %8d %8d %8d %8d %8d", p.PkgPath, got.files, got.methods, got.fields, got.circle, got.contexts)
		limit, known := ratchet[p.PkgPath]
		if !known {
			limit = most
		}
		for _, d := range dimensions {
			if d.of(got) > d.of(limit) {
				t.Errorf("%s has %d %s, more than %d: %s", p.PkgPath, d.of(got), d.name, d.of(limit), notes[d.name])
			}
		}
	}
	for path := range ratchet {
		if !seen[path] {
			t.Errorf("ratchet has a row for %s, which does not exist", path)
		}
	}
}

// TestTheEngineOnlyWires holds the type that everything hangs on to less than other types: rooms, and
// what opens, closes and runs them.
func TestTheEngineOnlyWires(t *testing.T) {
	const fields, methods = 12, 20
	for _, p := range loadHouse(t) {
		if p.PkgPath != "bagpipe/engine" {
			continue
		}
		engine := p.Types.Scope().Lookup("Engine").Type().(*types.Named)
		if n := engine.Underlying().(*types.Struct).NumFields(); n > fields {
			t.Errorf("Engine has %d fields, more than %d", n, fields)
		}
		if n := engine.NumMethods(); n > methods {
			t.Errorf("Engine has %d methods, more than %d", n, methods)
		}
	}
}

// loadHouse parses and type-checks the packages of this module. Those of other modules
// are read from the compiler's export data.
func loadHouse(t *testing.T) []*packages.Package {
	t.Helper()
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "bagpipe/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
	}
	if len(all) < 10 {
		t.Fatalf("go list names %d packages", len(all))
	}
	return all
}

// The sources are those of arm64, too, for which there is a package. They are checked without
// a build: a build of all that they import takes minutes.
func TestTheSourcesAreForArm64(t *testing.T) {
	t.Parallel()
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedFiles | packages.NeedCompiledGoFiles,
		Env:  append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0"),
	}, "bagpipe/...")
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			t.Error(err)
		}
	})
}

// measure gives p's size, and for each dimension the name of the largest.
func measure(p *packages.Package) (size, map[string]string) {
	s := size{files: len(p.Syntax)}
	notes := map[string]string{}
	larger := func(figure *int, dimension string, n int, name string) {
		if n > *figure {
			*figure, notes[dimension] = n, name
		}
	}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if named, ok := scope.Lookup(name).Type().(*types.Named); ok && named.Obj().Pkg() == p.Types {
			larger(&s.methods, "methods", named.NumMethods(), name)
		}
	}
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			at := p.Fset.Position(n.Pos())
			where := fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
			larger(&s.fields, "fields", literal.Fields.NumFields(), where)
			for _, field := range literal.Fields.List {
				if types.TypeString(p.TypesInfo.TypeOf(field.Type), nil) == "context.Context" {
					s.contexts++
					notes["contexts"] += where + " "
				}
			}
			return true
		})
	}
	for _, circle := range circles(references(p)) {
		larger(&s.circle, "circle", len(circle), strings.Join(circle, " "))
	}
	return s, notes
}

// references maps each file of p to the files whose top-level definitions it uses:
// types, functions, variables, constants and methods.
func references(p *packages.Package) map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	name := func(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }
	for _, file := range p.Syntax {
		from := name(file.Pos())
		uses[from] = map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if used := p.TypesInfo.Uses[id]; used != nil && used.Pkg() == p.Types && topLevel(used) {
				uses[from][name(used.Pos())] = true
			}
			return true
		})
	}
	return uses
}

// topLevel reports whether o is defined at the top of a file: in the package's scope, or as a method.
func topLevel(o types.Object) bool {
	if o.Parent() == o.Pkg().Scope() {
		return true
	}
	f, ok := o.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// circles gives the strongly connected components of a graph of files, by Tarjan's
// algorithm: from each file of a circle, references lead to every other and back.
func circles(uses map[string]map[string]bool) [][]string {
	var (
		found   [][]string
		stack   []string
		number  = map[string]int{} // order of first visit, from 1
		lowest  = map[string]int{} // lowest number reached from a file
		onStack = map[string]bool{}
		visit   func(string)
	)
	visit = func(file string) {
		number[file] = len(number) + 1
		lowest[file] = number[file]
		stack, onStack[file] = append(stack, file), true
		for _, next := range slices.Sorted(maps.Keys(uses[file])) {
			if number[next] == 0 {
				visit(next)
				lowest[file] = min(lowest[file], lowest[next])
			} else if onStack[next] {
				lowest[file] = min(lowest[file], number[next])
			}
		}
		if lowest[file] != number[file] {
			return
		}
		i := slices.Index(stack, file)
		circle := slices.Clone(stack[i:])
		stack = stack[:i]
		for _, member := range circle {
			onStack[member] = false
		}
		slices.Sort(circle)
		found = append(found, circle)
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	return found
}

func TestCirclesOfFiles(t *testing.T) {
	uses := map[string]map[string]bool{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, "d": {"d": true}, "e": {"a": true},
	}
	got := fmt.Sprint(circles(uses))
	if want := "[[d] [a b c] [e]]"; got != want {
		t.Errorf("circles are %s, not %s", got, want)
	}
}
