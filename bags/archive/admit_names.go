package archive

import (
	"fmt"
	"path"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// admission holds the one set of rules about members' names, for all who read an
// archive: who unpacks it, who looks at it, who validates the bag in it. Used by one
// goroutine.
type admission struct {
	archive  string
	limits   Limits
	zipped   bool  // a backslash separates folders to some programs
	controls bool  // control characters are taken: a bag's manifests can list them
	before   int64 // members of the archives around this one

	isDir   map[string]bool // every path so far: a folder, or not
	members int64           // seen, the same folder again included
	kept    int64           // bytes of memory, about
	fresh   func(name, p string, dir bool)
}

func newAdmission(archive string, l Limits, fresh func(name, p string, dir bool)) admission {
	return admission{archive: archive, limits: l, isDir: map[string]bool{}, fresh: fresh}
}

func (a *admission) broken(name string, rule files.Rule, detail string) error {
	return &files.Error{Archive: a.archive, Member: name, Rule: rule, Detail: detail}
}

// admit checks a member's name against the rules and the members before it, and
// gives its path. An empty path is the root folder: nothing to do.
func (a *admission) admit(name string, dir bool) (string, error) {
	checked := name
	if a.controls {
		checked = plainControls(name)
	}
	p, rule, detail := checkName(checked, a.zipped, a.limits)
	if rule != "" {
		return "", a.broken(name, rule, detail)
	}
	if a.members++; a.before+a.members > a.limits.Files {
		return "", a.broken(name, files.RuleFiles, fmt.Sprintf("the archive has more than %d members", a.limits.Files))
	}
	if p == "" {
		if !dir {
			return "", a.broken(name, files.RuleEmptyName, "the member names the folder itself")
		}
		return "", nil
	}
	if a.controls {
		p = path.Clean(name)
	}
	if err := a.parents(name, p); err != nil {
		return "", err
	}
	was, seen := a.isDir[p]
	switch {
	case seen && was != dir:
		return "", a.broken(name, files.RuleConflict, "one path is both a file and a folder")
	case seen && !dir:
		return "", a.broken(name, files.RuleDuplicate, "two members have this name")
	case !seen:
		return p, a.note(name, p, dir)
	}
	return p, nil
}

// parents counts the folders that no member stands for as members too: they are made
// all the same.
func (a *admission) parents(name, p string) error {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		was, seen := a.isDir[d]
		if seen && was {
			return nil
		}
		if seen {
			return a.broken(name, files.RuleConflict, fmt.Sprintf("%q is a file in this archive", layout.EncodePath(d)))
		}
		if int64(len(a.isDir)) >= a.limits.Files+int64(a.limits.Depth) {
			return a.broken(name, files.RuleFiles, fmt.Sprintf("the archive has more than %d members and folders above them", a.limits.Files))
		}
		if err := a.note(name, d, true); err != nil {
			return err
		}
	}
	return nil
}

// keptName is what is kept of a path beside two copies of it.
const keptName = 160

// note keeps a path, as long as all that are kept stay within the memory that a decoder
// may have: names compress well.
func (a *admission) note(name, p string, dir bool) error {
	if a.kept += int64(2*len(p) + keptName); a.kept > a.limits.Memory {
		return a.broken(name, files.RuleMemory, fmt.Sprintf("the names of its members need more than the %d bytes of memory allowed", a.limits.Memory))
	}
	a.isDir[p] = dir
	a.fresh(name, p, dir)
	return nil
}

// plainControls makes a name's control characters pass the rules of unpacking;
// NUL, which no file system takes, stays.
func plainControls(name string) string {
	return strings.Map(func(r rune) rune {
		if r > 0 && r < 0x20 || r == 0x7f {
			return '_'
		}
		return r
	}, name)
}
