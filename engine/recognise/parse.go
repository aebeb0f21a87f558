package recognise

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"bagpipe/layout"
)

const schema = 1

// SplitDeep is what a rule says whose drops are searched for objects at any depth.
const SplitDeep = "deep"

// What a rule may say of a drop whose identifier an item has.
const (
	KnownReject  = "reject"  // it is set aside
	KnownVersion = "version" // it becomes the next version of that item
)

// Parse reads and checks a rule file; its errors are *layout.FileError.
func Parse(path string, data []byte) (*File, error) {
	y, err := layout.ParseYAML(path, data)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, yaml: y}
	if err := y.Decode(f); err != nil {
		return nil, err
	}
	if f.Schema != schema {
		return nil, y.Errorf("$.schema", "expected schema: %d", schema)
	}
	if _, err := layout.ParseName(f.Name); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	c := &checker{file: f}
	if err := c.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// Path is where the file was read from.
func (f *File) Path() string { return f.path }

// Errorf makes a *layout.FileError at a YAML path of the file.
func (f *File) Errorf(at, format string, args ...any) error {
	return f.yaml.Errorf(at, format, args...)
}

// checker checks one file; known are the variables of the rule it is at.
type checker struct {
	file    *File
	regexps int
	known   map[string]bool
}

func (c *checker) check() error {
	f := c.file
	if f.Order < -maxOrder || f.Order > maxOrder {
		return f.Errorf("$.order", "expected a number from -%d to %d", maxOrder, maxOrder)
	}
	for at, list := range map[string][]string{"$.lists.drops.allow": f.Lists.Drops.Allow, "$.lists.drops.deny": f.Lists.Drops.Deny,
		"$.lists.inside.allow": f.Lists.Inside.Allow, "$.lists.inside.deny": f.Lists.Inside.Deny} {
		for i, glob := range list {
			if err := checkGlob(glob); err != nil {
				return f.Errorf(fmt.Sprintf("%s[%d]", at, i), "%v", err)
			}
		}
	}
	if err := c.checkDelivery(); err != nil {
		return err
	}
	if at, err := checkRetention(f.Retention); err != nil {
		return f.Errorf(at, "%v", err)
	}
	if len(f.Rules) > maxRules {
		return f.Errorf("$.rules", "%d rules; at most %d in a file", len(f.Rules), maxRules)
	}
	seen := map[string]bool{}
	for i := range f.Rules {
		r, at := &f.Rules[i], fmt.Sprintf("$.rules[%d]", i)
		r.file = f
		if _, err := layout.ParseName(r.Name); err != nil {
			return f.Errorf(at+".name", "%v", err)
		}
		if seen[r.Name] {
			return f.Errorf(at+".name", "a second rule %q in this file", r.Name)
		}
		seen[r.Name] = true
		if err := c.rule(r, at); err != nil {
			return err
		}
	}
	return c.quality()
}

func (c *checker) rule(r *Rule, at string) error {
	f := c.file
	c.known = map[string]bool{}
	for _, v := range builtinVars() {
		c.known[v] = true
	}
	if !slices.Contains([]string{"", "yes", "maybe", "no"}, r.Verdict) {
		return f.Errorf(at+".verdict", "expected yes, maybe or no, not %q", r.Verdict)
	}
	if !slices.Contains([]string{"", KnownReject, KnownVersion}, r.Known) {
		return f.Errorf(at+".known", "expected reject or version, not %q", r.Known)
	}
	switch {
	case !slices.Contains([]string{"", SplitDeep}, r.Split):
		return f.Errorf(at+".split", "expected deep, not %q", r.Split)
	case r.Split != "" && r.Match.Sets != nil:
		return f.Errorf(at+".split", "does not go with sets, which tell the objects of one kind apart")
	}
	for key, name := range map[string]string{"type": r.Type, "workflow": r.Workflow, "collection": r.Collection, "lane": r.Lane} {
		if _, err := layout.ParseName(name); name != "" && err != nil {
			return f.Errorf(at+"."+key, "%v", err)
		}
	}
	if err := c.match(&r.Match, at+".match", 0); err != nil {
		return err
	}
	if err := c.match(&r.Expect, at+".expect", 0); err != nil {
		return err
	}
	if r.Program != nil && (len(r.Program) == 0 || r.Program[0] == "") {
		return f.Errorf(at+".program", "expected a program and its arguments")
	}
	if err := checkVariables(r.Label, c.known); err != nil {
		return f.Errorf(at+".label", "%v", err)
	}
	if err := c.values(r.Identifiers, at+".identifiers"); err != nil {
		return err
	}
	return c.values(r.Metadata, at+".metadata")
}

func (c *checker) values(values map[string]Value, at string) error {
	if len(values) > maxValues {
		return c.file.Errorf(at, "%d keys; at most %d", len(values), maxValues)
	}
	for key, v := range values {
		here := at + "." + key
		if _, err := layout.ParseName(key); err != nil {
			return c.file.Errorf(at, "%v", err)
		}
		for _, text := range []string{v.Text, v.File} {
			if err := checkVariables(text, c.known); err != nil {
				return c.file.Errorf(here, "%v", err)
			}
		}
		if len(v.JSON) > maxPath {
			return c.file.Errorf(here, "the path is %d bytes long; at most %d", len(v.JSON), maxPath)
		}
		if v.XML != "" {
			x, err := compileXPath(v.XML, c.file.Namespaces)
			if err != nil {
				return c.file.Errorf(here, "%v", err)
			}
			v.xpath = x
		}
		values[key] = v
	}
	return nil
}

// match checks conditions, and the variables that the later ones use.
func (c *checker) match(m *Match, at string, depth int) error {
	if depth > maxDepth {
		return c.file.Errorf(at, "all, any and not are nested deeper than %d", maxDepth)
	}
	for _, list := range []*Texts{&m.Collection, &m.Kind, &m.Name} {
		if len(*list) == 1 && (*list)[0] == "" {
			*list = nil // as nothing given, as before there were lists of them
		}
	}
	for i, k := range m.Kind {
		if !slices.Contains([]string{KindFolder, KindArchive, KindBag, KindFile}, k) {
			return c.file.Errorf(each(at+".kind", i, m.Kind), "expected folder, archive, bag or file, not %q", k)
		}
	}
	for i, n := range m.Collection {
		if _, err := layout.ParseName(n); err != nil {
			return c.file.Errorf(each(at+".collection", i, m.Collection), "%v", err)
		}
	}
	if err := c.globs(m.Name, at+".name"); err != nil {
		return err
	}
	var err error
	if m.regexp, err = c.pattern(m.Regexp, at+".regexp"); err != nil {
		return err
	}
	if err := c.bytes(m, at); err != nil {
		return err
	}
	if err := c.templates(Texts{m.Top}, at+".top"); m.Top != "" && err != nil {
		return err
	}
	if m.find, err = c.pattern(m.Find, at+".find"); err != nil {
		return err
	}
	if err := c.sets(m.Sets, at+".sets"); err != nil {
		return err
	}
	if err := cmp.Or(c.templates(m.Holds, at+".holds"), c.templates(m.Lacks, at+".lacks"), c.templates(m.May, at+".may"),
		c.counts(m.Count, at+".count"), c.documents(m, at)); err != nil {
		return err
	}
	m.everything = len(questions{}.conditions(m)) == 0
	return c.nested(m, at, depth)
}

// each names one of several texts, or the one that stands there alone.
func each(at string, i int, list Texts) string {
	if len(list) == 1 {
		return at
	}
	return fmt.Sprintf("%s[%d]", at, i)
}

func (c *checker) nested(m *Match, at string, depth int) error {
	for i := range m.All {
		if err := c.match(&m.All[i], fmt.Sprintf("%s.all[%d]", at, i), depth+1); err != nil {
			return err
		}
	}
	for i := range m.Any {
		if err := c.match(&m.Any[i], fmt.Sprintf("%s.any[%d]", at, i), depth+1); err != nil {
			return err
		}
	}
	if m.Not == nil {
		return nil
	}
	known := c.known // what is found within not is not there afterwards
	c.known = map[string]bool{}
	for v := range known {
		c.known[v] = true
	}
	err := c.match(m.Not, at+".not", depth+1)
	c.known = known
	return err
}

// pattern compiles a regular expression and notes its named groups; "" is none.
func (c *checker) pattern(text, at string) (*pattern, error) {
	if text == "" {
		return nil, nil
	}
	if c.regexps++; c.regexps > maxRegexps {
		return nil, c.file.Errorf(at, "more than %d regular expressions in this file", maxRegexps)
	}
	p, err := compilePattern(text)
	if err != nil {
		return nil, c.file.Errorf(at, "%v", err)
	}
	for _, g := range p.groups {
		if slices.Contains(builtinVars(), g) {
			return nil, c.file.Errorf(at, "the group %q has the name of a variable that is there already", g)
		}
		if g != "" {
			c.known[g] = true
		}
	}
	return p, nil
}

func (c *checker) globs(list Texts, at string) error {
	for i, glob := range list {
		if err := checkGlob(glob); err != nil {
			return c.file.Errorf(each(at, i, list), "%v", err)
		}
	}
	return nil
}

// templates checks patterns with variables in them.
func (c *checker) templates(list Texts, at string) error {
	for i, text := range list {
		if err := checkVariables(text, c.known); err != nil {
			return c.file.Errorf(each(at, i, list), "%v", err)
		}
		if err := checkGlob(vars{}.glob(text)); err != nil && !strings.HasPrefix(text, "${") {
			return c.file.Errorf(each(at, i, list), "%v", err)
		}
	}
	return nil
}

// bytes checks what is asked of size and bytes.
func (c *checker) bytes(m *Match, at string) error {
	if m.Size != nil && m.Size.Max > 0 && m.Size.Max < m.Size.Min {
		return c.file.Errorf(at+".size", "the greatest size is less than the least")
	}
	for i, t := range m.MIME {
		if kind, sub, ok := strings.Cut(t, "/"); !ok || kind == "" || sub == "" || strings.ContainsAny(t, " ;") {
			return c.file.Errorf(each(at+".mime", i, m.MIME), "expected a type such as image/tiff or audio/*, not %q", t)
		}
	}
	for i, e := range m.Extension {
		if e == "" || strings.ContainsAny(e, "/*") {
			return c.file.Errorf(each(at+".extension", i, m.Extension), "expected an extension such as tif or tar.gz, not %q", e)
		}
	}
	for i := range m.Magic {
		g, here := &m.Magic[i], fmt.Sprintf("%s.magic[%d]", at, i)
		if (g.Hex == "") == (g.Text == "") {
			return c.file.Errorf(here, "expected hex or text")
		}
		if g.At < 0 {
			return c.file.Errorf(here+".at", "expected a number from 0 up")
		}
		g.bytes = []byte(g.Text)
		if g.Hex != "" {
			b, err := hex.DecodeString(strings.ReplaceAll(g.Hex, " ", ""))
			if err != nil {
				return c.file.Errorf(here+".hex", "expected pairs of hexadecimal digits such as 49 49 2a 00, not %q", g.Hex)
			}
			g.bytes = b
		}
		if len(g.bytes) > mimeHead {
			return c.file.Errorf(here, "%d bytes; at most %d", len(g.bytes), mimeHead)
		}
	}
	return nil
}

// checkDelivery reads the conditions of delivery:.
func (c *checker) checkDelivery() (err error) {
	f := c.file
	if len(f.Delivery) > maxRules {
		return f.Errorf("$.delivery", "%d rules; at most %d in a file", len(f.Delivery), maxRules)
	}
	for i := range f.Delivery {
		d, at := &f.Delivery[i], fmt.Sprintf("$.delivery[%d]", i)
		if d.To == "" {
			return f.Errorf(at, "expected to:, the name of a target")
		}
		if _, err := layout.ParseName(d.To); err != nil {
			return f.Errorf(at+".to", "%v", err)
		}
		if d.Which, err = parseCondition(d.For); err != nil {
			return f.Errorf(at+".for", "%v", err)
		}
		if d.Approve == ApproveNever || d.Approve == ApproveAlways {
			continue
		}
		if d.Approve != "" && !strings.ContainsAny(d.Approve, " .=<>~") { // a misspelt always would ask nobody
			return f.Errorf(at+".approve", "expected never, always, or a condition such as metadata.year < 1950, not %q", d.Approve)
		}
		if d.Asked, err = parseCondition(d.Approve); err != nil {
			return f.Errorf(at+".approve", "%v", err)
		}
	}
	return nil
}
