package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bagpipe/engine/fault"

	"github.com/alecthomas/kong"
)

// No text of the engine holds a shell command: the engine gives remedies, and remedy.go
// puts them into words. The bench programs under engine/internal are commands themselves.
func TestTheEngineSpeaksNoShell(t *testing.T) {
	parsed, err := kong.New(&cli{}, kong.Name("bagpipe"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range parsed.Model.Children {
		names = append(names, node.Name)
	}
	command := regexp.MustCompile(`bagpipe (` + strings.Join(names, "|") + `)\b|\b(chmod|chown|setfacl|mkdir|rm -r|mv|cp|sudo|systemctl) |^"rm "|\bgit (branch|config|update-ref|revert|reset|push|fetch|merge) `)
	root := moduleRoot(t)
	err = filepath.WalkDir(filepath.Join(root, "engine"), func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		if d != nil && d.IsDir() && rel == "engine/internal" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && command.MatchString(l.Value) {
				t.Errorf("%s holds a command: %s; carry a fault.Remedy instead", set.Position(l.Pos()), l.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorTextNamesRemedies(t *testing.T) {
	none := fault.New(fault.NotFound, `no collection "maps"`, fault.Remedy{Verb: fault.ListCollections}, fault.Remedy{Verb: fault.AddCollection, Name: "maps"})
	err := errors.Join(fmt.Errorf("a.txt: %w", none), errors.New("disk"))
	want := "a.txt: no collection \"maps\"; bagpipe collection list shows them; bagpipe collection add maps makes it\ndisk"
	if got := errorText(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShellTextQuotesPaths(t *testing.T) {
	for _, c := range []struct {
		remedy fault.Remedy
		want   string
	}{
		{fault.Remedy{Verb: fault.RemoveFolder, Name: "odd name's"}, `rm -r 'odd name'\''s'`},
		{fault.Remedy{Verb: fault.PermitGroup, Name: "a\xffb", Access: "rX"}, `chmod -R g+rX $'a\xffb'`},
		{fault.Remedy{Verb: fault.Retry, Item: "3fa9c0d2e1b7a45", Run: "flow.1", Step: "check"}, "bagpipe step retry 3fa9c0d2 flow.1/check"},
		{fault.Remedy{Verb: fault.ShowWorkflow}, "bagpipe workflow show NAME"},
		{fault.Remedy{}, ""},
	} {
		if got := shellText(c.remedy); got != c.want {
			t.Errorf("%+v is %q, not %q", c.remedy, got, c.want)
		}
	}
}

// A verb without a phrase would print a fmt error instead of its command.
func TestEveryVerbHasAPhrase(t *testing.T) {
	full := fault.Remedy{Item: "3fa9c0d2e1b7a45", Run: "flow", Step: "check", Name: "n", Access: "rX", Account: "a", From: "f", To: "t"}
	for verb, phrase := range phrases {
		full.Verb = verb
		if shellText(full) == "" || strings.Count(phrase, "%s") != 1 {
			t.Errorf("verb %s: command %q, phrase %q", verb, shellText(full), phrase)
		}
	}
}
