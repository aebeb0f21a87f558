package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/worker"
	"bagpipe/steps"

	"github.com/alecthomas/kong"
)

// reference reads docs/reference.md, split at its headings: the text of each
// section by the heading's words.
func reference(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	heading := ""
	for line := range strings.Lines(string(data)) {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			heading = strings.Trim(strings.TrimSpace(h), "`")
		}
		sections[heading] += line
	}
	return sections
}

// TestReferenceCommands wants a section for every command, with every argument
// and option in it, and the common ones under "Commands".
func TestReferenceCommands(t *testing.T) {
	sections := reference(t)
	parser, err := kong.New(&cli{}, kong.Name("bagpipe"), kong.Vars{"version": version})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Flags {
		wantOption(t, sections, "Commands", f)
	}
	leaves := 0
	for _, leaf := range parser.Model.Leaves(true) {
		leaves++
		name, _, _ := strings.Cut(leaf.Path(), " (") // without its other names
		heading := "bagpipe " + name
		heading = strings.TrimPrefix(heading, "bagpipe bagpipe")
		if !strings.HasPrefix(heading, "bagpipe") {
			heading = "bagpipe" + heading
		}
		section, ok := sections[heading]
		if !ok {
			t.Errorf("docs/reference.md has no section %q", heading)
			continue
		}
		for _, f := range leaf.Flags {
			wantOption(t, sections, heading, f)
		}
		for _, p := range leaf.Positional {
			if name := strings.ToUpper(p.Name); !strings.Contains(section, name) {
				t.Errorf("docs/reference.md, %s: argument %s is not named", heading, name)
			}
		}
	}
	if leaves < 15 {
		t.Errorf("only %d commands found", leaves)
	}
}

// synonyms are the words for a step's work that Bagpipe does not use: the field's are step,
// robot, attempt.
var synonyms = regexp.MustCompile(`(?i)\b(jobs?|tasks?)\b`)

// No command, option or argument is called or explained by a synonym of the field's words; and
// a help names the thing that it speaks of: items, steps, drops; never "what …".
func TestHelpUsesTheFieldsWords(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.Name("bagpipe"), kong.Vars{"version": version})
	if err != nil {
		t.Fatal(err)
	}
	var visit func(*kong.Node)
	visit = func(n *kong.Node) {
		words := []string{n.Name, n.Help, n.Detail}
		for _, f := range n.Flags {
			words = append(words, f.Name, f.Help)
		}
		for _, p := range n.Positional {
			words = append(words, p.Name, p.Help)
		}
		for _, w := range words {
			for _, shunned := range []*regexp.Regexp{synonyms, regexp.MustCompile(`(?i)\bwhat\b`)} {
				if found := shunned.FindString(w); found != "" {
					t.Errorf("%s: %q in %q", n.Path(), found, w)
				}
			}
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(parser.Model.Node)
}

// trailerKeys finds the keys of trailers in the sources of commits' messages.
var trailerKeys = regexp.MustCompile(`(?:\{|Trailer\s*= )"(Bagpipe-[A-Za-z0-9-]+)"[,\s]`)

// Every trailer that a commit may have is a row under "Commits".
func TestReferenceTrailers(t *testing.T) {
	section, found := reference(t)["Commits"], map[string]bool{}
	err := filepath.WalkDir("../../engine", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, key := range trailerKeys.FindAllStringSubmatch(string(data), -1) {
			found[key[1]] = true
		}
		return err
	})
	if err != nil || len(found) < 30 {
		t.Fatalf("%d trailers found: %v", len(found), err)
	}
	for key := range found {
		if !strings.Contains(section, "`"+key+"`") {
			t.Errorf("docs/reference.md, Commits: %s is not named", key)
		}
	}
}

func wantOption(t *testing.T, sections map[string]string, heading string, f *kong.Flag) {
	t.Helper()
	if f.Hidden {
		return
	}
	if !strings.Contains(sections[heading], "--"+f.Name) {
		t.Errorf("docs/reference.md, %s: --%s is not named", heading, f.Name)
	}
	if f.Short != 0 && !strings.Contains(sections[heading], "-"+string(f.Short)) {
		t.Errorf("docs/reference.md, %s: -%c is not named", heading, f.Short)
	}
}

// TestReferenceSettings wants every key of the files people write.
func TestReferenceSettings(t *testing.T) {
	sections := reference(t)
	for heading, v := range map[string]any{
		"bagpipe.yaml":        settings.Settings{},
		"rules/NAME.yaml":     settings.RuleFile{},
		"workflows/NAME.yaml": state.Definition{},
		"worker.yaml":         worker.Config{},
	} {
		for _, key := range yamlKeys(reflect.TypeOf(v), "", map[reflect.Type]bool{}) {
			if strings.HasPrefix(key, "defaults.inbox") {
				continue // refused there
			}
			if below, ok := strings.CutPrefix(key, "collections.NAME.inbox."); ok {
				key = "inbox." + below // the same keys
			}
			if below, ok := strings.CutPrefix(key, "robots.NAME."); ok {
				key = "steps.NAME." + below
			}
			if !strings.Contains(sections[heading], "`"+key+"`") {
				t.Errorf("docs/reference.md, %s: key `%s` is not named", heading, key)
			}
		}
	}
	for name, b := range steps.Builtins() {
		row := tableRow(sections["Built-in robots"], string(name))
		if row == "" {
			t.Errorf("docs/reference.md: robot %s has no row under Built-in robots", name)
		}
		for _, p := range b.Parameters {
			if !strings.Contains(row, "`"+p+"`") {
				t.Errorf("docs/reference.md: parameter %s of robot %s is not named", p, name)
			}
		}
	}
}

// TestReferenceEnvironment holds the table of what programs find in their environment to the code that
// sets it.
func TestReferenceEnvironment(t *testing.T) {
	code, err := os.ReadFile("../../steps/command.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, set []string
	for _, m := range regexp.MustCompile("(?m)^  \\| (`BAGPIPE_.*?) \\|").FindAllStringSubmatch(string(docs), -1) {
		told = append(told, strings.Split(strings.ReplaceAll(m[1], "`", ""), ", ")...)
	}
	for _, m := range regexp.MustCompile(`"(BAGPIPE_[A-Z_]+)=`).FindAllStringSubmatch(string(code), -1) {
		set = append(set, m[1])
	}
	slices.Sort(told)
	slices.Sort(set)
	if len(set) == 0 || !slices.Equal(told, set) {
		t.Errorf("docs/workflows.md tells of\n%v, and steps/command.go sets\n%v", told, set)
	}
}

func tableRow(section, name string) string {
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `"+name+"`") {
			return line
		}
	}
	return ""
}

// yamlKeys lists the keys of a settings type as people write them, with what they
// stand under: inbox.quiet, collections.NAME.lane, steps[].robot. Of a type that holds
// itself they are listed once, of one that reads itself not at all.
func yamlKeys(t reflect.Type, under string, told map[reflect.Type]bool) (keys []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, reads := reflect.PointerTo(t).MethodByName("UnmarshalYAML"); reads || told[t] {
		return nil
	}
	told[t] = holds(t, t, map[reflect.Type]bool{})
	switch t.Kind() {
	case reflect.Slice:
		return yamlKeys(t.Elem(), under+"[]", told)
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return yamlKeys(t.Elem(), under+".NAME", told)
		}
	case reflect.Struct:
		for f := range t.Fields() {
			name, how, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if how == "inline" {
				keys = append(keys, yamlKeys(f.Type, under, told)...)
			}
			if name == "" || name == "-" {
				continue
			}
			key := strings.TrimPrefix(under+"."+name, ".")
			keys = append(keys, key)
			keys = append(keys, yamlKeys(f.Type, key, told)...)
		}
	}
	return keys
}

// holds tells whether a value of type t can have one of type what within it.
func holds(t, what reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return t.Elem() == what || holds(t.Elem(), what, seen)
	case reflect.Struct:
		if seen[t] {
			return false
		}
		seen[t] = true
		for f := range t.Fields() {
			if f.IsExported() && (f.Type == what || holds(f.Type, what, seen)) {
				return true
			}
		}
	}
	return false
}

var docLink = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestDocsLinks wants what the pages link to in the project to be there.
func TestDocsLinks(t *testing.T) {
	for _, file := range docFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docLink.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", docName(file), m[1], err)
			}
		}
	}
}
