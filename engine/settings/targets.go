package settings

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// checkTargets checks targets:.
func checkTargets(s *Settings, y *layout.YAML) error {
	for name, c := range s.Targets {
		if _, err := layout.ParseName(name); err != nil {
			return y.Errorf("$.targets", "target %v", err)
		}
		if name == string(steps.StoreTarget) {
			return y.Errorf("$.targets."+name, "store is the target that store: names")
		}
		if key, err := c.Check(); err != nil {
			return y.Errorf("$.targets."+name+"."+key, "%v", err)
		}
	}
	return checkApart(s, y)
}

// checkApart refuses two targets at one place of which each would write over what the other has.
func checkApart(s *Settings, y *layout.YAML) error {
	at := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Targets)) {
		c := s.Targets[name]
		key := ""
		switch {
		case c.Kind == target.KindFolder && c.Layout == "":
			key = "path"
		case c.Kind == target.KindURL && !strings.Contains(c.URL, "{key}"): // which names the target
			key = "url"
		default:
			continue
		}
		if other := at[c.Where()]; other != "" {
			return y.Errorf("$.targets."+name+"."+key, "target %s is there already: each would write over what the other has of an item", other)
		}
		at[c.Where()] = name
	}
	return nil
}

// checkGoals checks where the bags of a collection are deposited.
func checkGoals(s *Settings, y *layout.YAML, at string, c Collection) error {
	for i, name := range c.Targets {
		if _, is := s.Targets[name]; !is && name != string(steps.StoreTarget) {
			return y.Errorf(fmt.Sprintf("%s.targets[%d]", at, i), "no target %q; the targets are %s", name, strings.Join(s.TargetNames(), ", "))
		}
		if !s.Targets[name].Deposits() {
			return y.Errorf(fmt.Sprintf("%s.targets[%d]", at, i), "%s is of kind %s, where items are delivered and no bags are deposited", name, s.Targets[name].Kind)
		}
		if slices.Contains(c.Targets[:i], name) {
			return y.Errorf(fmt.Sprintf("%s.targets[%d]", at, i), "%s is named twice", name)
		}
	}
	targets := c.Targets
	if targets == nil {
		targets = s.Defaults.Targets
	}
	if c.Copies < 0 || c.Copies > max(1, len(targets)) {
		return y.Errorf(at+".copies", "expected a number from 0 (a copy on each target) to %d, as many as there are targets", max(1, len(targets)))
	}
	return nil
}

// TargetNames are all targets, the store first.
func (s *Settings) TargetNames() []string {
	names := []string{string(steps.StoreTarget)}
	for name := range s.Targets {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	return names
}

// Goals are the targets of a collection's bags, and how many copies complete a deposit;
// none: they go in the store alone.
func (s *Settings) Goals(collection layout.Name) (targets []string, copies int) {
	c := s.Collection(collection)
	if len(c.Targets) == 0 || len(c.Targets) == 1 && c.Targets[0] == string(steps.StoreTarget) {
		return nil, 1
	}
	if c.Copies == 0 {
		c.Copies = len(c.Targets)
	}
	return c.Targets, c.Copies
}

// Target is a target with its paths resolved; the store is at store.
func (s *Settings) Target(root, name, store string) (target.Config, bool) {
	if name == string(steps.StoreTarget) {
		return target.Config{Kind: target.KindFolder, Path: store}, true
	}
	c, is := s.Targets[name]
	if c.Kind == target.KindFolder {
		c.Path = filepath.Clean(Below(root, c.Path))
	}
	for _, file := range []*string{&c.Template, &c.Secrets, &c.CA, &c.KnownHosts, &c.Key} {
		if *file != "" {
			*file = Below(root, *file)
		}
	}
	c.Keys.Below(root)
	return c, is
}
