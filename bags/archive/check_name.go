package archive

import (
	"fmt"
	"path"
	"strings"

	"bagpipe/bags/files"
)

// checkName turns a member's stored name into a clean relative path, or says
// which rule it breaks. "" without a rule is the root folder itself, as in the
// "./" that tar writes first.
func checkName(name string, zipped bool, l Limits) (string, files.Rule, string) {
	if name == "" {
		return "", files.RuleEmptyName, "the member has no name"
	}
	if rule, detail := checkBytes(name, zipped); rule != "" {
		return "", rule, detail
	}
	if len(name) > l.PathLength {
		return "", files.RulePathLength, fmt.Sprintf("the path is longer than %d bytes", l.PathLength)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", files.RuleParent, "the path has \"..\""
		}
		if len(part) > maxNameBytes {
			return "", files.RuleLongName, fmt.Sprintf("a name is longer than %d bytes", maxNameBytes)
		}
	}
	clean := path.Clean(name)
	if clean == "." {
		return "", "", ""
	}
	if strings.Count(clean, "/") >= l.Depth {
		return "", files.RuleDepth, fmt.Sprintf("more than %d folders deep", l.Depth)
	}
	return clean, "", ""
}

// checkBytes looks at what a path must not hold, whatever its parts.
func checkBytes(name string, zipped bool) (files.Rule, string) {
	for i := range len(name) {
		if name[i] == 0 {
			return files.RuleControl, "the name holds a NUL"
		}
		if name[i] < 0x20 || name[i] == 0x7f {
			return files.RuleControl, "the name holds a control character"
		}
	}
	switch {
	case name[0] == '/':
		return files.RuleAbsolute, "the path is absolute"
	case strings.HasPrefix(name, `\\`):
		return files.RuleAbsolute, "the path names a network share"
	case len(name) >= 2 && name[1] == ':' && isLetter(name[0]) && (len(name) == 2 || name[2] == '/' || name[2] == '\\'):
		return files.RuleDrive, "the path begins with a drive letter"
	case name[0] == '\\':
		return files.RuleAbsolute, "the path is absolute"
	}
	if strings.IndexByte(name, '\\') < 0 {
		return "", ""
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if part == ".." {
			return files.RuleParent, `the path has ".."`
		}
	}
	if zipped {
		return files.RuleBackslash, "zip members are separated by \"/\"; a backslash means different files to different programs"
	}
	return "", ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
