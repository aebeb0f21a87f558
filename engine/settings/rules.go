package settings

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"bagpipe/engine/recognise"
	"bagpipe/layout"
	"bagpipe/templates"
)

// RuleFile is rules/NAME.yaml.
type RuleFile = recognise.File

// ParseRules reads and checks a rule file; its errors are *layout.FileError.
func ParseRules(file string, data []byte) (*RuleFile, error) { return recognise.Parse(file, data) }

// ShippedRules are the rule files that a new workspace begins with, by name.
func ShippedRules() (map[string][]byte, error) {
	entries, err := templates.Workspace.ReadDir(layout.RulesDir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".yaml"); ok {
			if out[name], err = templates.Workspace.ReadFile(layout.RulesDir + "/" + entry.Name()); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// CheckRules reads a rule file as if it were in rules/, in the place of one of its name,
// and looks up the workflows, lanes, collections, targets and rules that it names in the settings
// as the workspace has them: what was edited there comes into force first. Its errors are
// *layout.FileError.
func (so *Source) CheckRules(file string, data []byte) (*RuleFile, error) {
	f, err := ParseRules(file, data)
	if err != nil {
		return nil, err
	}
	tip, err := so.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	v := comingTree{overlay{folderTree(so.ledger.Root), tip}, so.check}
	defs, err := so.check.definitionsAt(v)
	if err != nil {
		return nil, err
	}
	err = so.check.crossCheckRules(v, layout.RulesDir+"/"+f.Name+".yaml", data, func(workflow string) bool {
		return defs[workflow] != nil
	})
	var fe *layout.FileError
	if errors.As(err, &fe) {
		here := *fe
		here.File = file
		return nil, &here
	}
	return f, err
}

// crossCheckRules checks what a rule file, edited or removed (data nil), says of
// workflows, lanes, collections and of other rules, and what they say of it.
func (k *checker) crossCheckRules(v tree, p string, data []byte, defined func(workflow string) bool) error {
	files, err := k.ruleFilesBeside(v, p)
	if err != nil {
		return err
	}
	if data == nil {
		return mistakeIn(recognise.NewBook(files), nil, "")
	}
	f, err := k.parseRules(p, data)
	if err != nil {
		return err
	}
	settings, err := k.settingsAt(v)
	if err != nil {
		return err
	}
	for i := range f.Rules {
		r, at := &f.Rules[i], fmt.Sprintf("$.rules[%d]", i)
		if r.Workflow != "" && !defined(r.Workflow) {
			return f.Errorf(at+".workflow", "no workflow %q in workflows/", r.Workflow)
		}
		if r.Lane != "" && settings != nil && !slices.Contains(settings.LaneNames(), r.Lane) {
			return f.Errorf(at+".lane", "no lane %q; the lanes are %s", r.Lane, strings.Join(settings.LaneNames(), ", "))
		}
		if r.Collection != "" && settings != nil && !k.isCollection(settings, r.Collection) {
			return f.Errorf(at+".collection", noCollection, r.Collection)
		}
	}
	for i, d := range f.Delivery {
		if settings == nil {
			break
		}
		if _, is := settings.Targets[d.To]; !is {
			return f.Errorf(fmt.Sprintf("$.delivery[%d].to", i), "no target %q below targets: in %s", d.To, layout.SettingsFile)
		}
	}
	for _, other := range files {
		if other.Name == f.Name {
			return f.Errorf("$.name", "%s has the name %q, too", other.Path(), f.Name)
		}
	}
	return mistakeIn(recognise.NewBook(append(files, f)), f, p)
}

// mistakeIn is the first mistake of one rule file about another that concerns f: its
// own, or one of others that this edit made. Those of files not edited are told
// where they are loaded.
func mistakeIn(b *recognise.Book, f *RuleFile, p string) error {
	for _, err := range b.Broken {
		var fe *layout.FileError
		if f == nil || errors.As(err, &fe) && fe.File == p {
			return err
		}
	}
	return nil
}

const noCollection = "no collection %q: it is neither in " + layout.SettingsFile + " nor a folder of " + layout.InboxDir + "/"

// isCollection reports whether there is such a collection.
func (k *checker) isCollection(s *Settings, name string) bool {
	info, err := os.Stat(k.path(layout.InboxDir + "/" + name))
	return s.HasCollection(name, err == nil && info.IsDir())
}

// ruleFilesBeside reads the other rule files: where inHand as they stand in the workspace,
// as one may have been edited together with p, else as in the tree. Broken ones are left
// out: they are told by themselves.
func (k *checker) ruleFilesBeside(v tree, p string) (files []*RuleFile, err error) {
	paths, err := Paths(v)
	if err != nil {
		return nil, err
	}
	var on []os.DirEntry
	if k.inHand {
		on, _ = os.ReadDir(k.path(layout.RulesDir)) // what is not there is not edited
	}
	for _, entry := range on {
		if here := layout.RulesDir + "/" + entry.Name(); entry.Type().IsRegular() && isSettings(here) {
			paths = append(paths, here)
		}
	}
	slices.Sort(paths)
	for _, other := range slices.Compact(paths) {
		if path.Dir(other) != layout.RulesDir || other == p {
			continue
		}
		data, err := k.readRules(v, other)
		if err != nil {
			continue
		}
		if f, err := k.parseRules(other, data); err == nil {
			files = append(files, f)
		}
	}
	return files, nil
}

func (k *checker) readRules(v tree, name string) ([]byte, error) {
	if k.inHand {
		if data, err := os.ReadFile(k.path(name)); err == nil {
			return data, nil
		}
	}
	return v.ReadFile(name)
}

func (k *checker) parseRules(p string, data []byte) (*RuleFile, error) {
	part, err := k.parse(p, data)
	if err != nil {
		return nil, err
	}
	return part.(*RuleFile), nil
}
