package condition

import (
	"fmt"
	"strings"
)

const maxPath = 200

// CheckPath refuses what is no path, and a path below quality that is none there.
func CheckPath(p string) error {
	if err := checkForm(p); err != nil {
		return err
	}
	_, _, err := lead(p)
	return err
}

// checkForm takes gjson's plain paths: its modifiers, queries and pipes are a language of
// their own.
func checkForm(p string) error {
	if p == "" || len(p) > maxPath || strings.HasSuffix(p, `\`) {
		return fmt.Errorf("expected a path such as metadata.sheets, of at most %d characters", maxPath)
	}
	for name := range strings.SplitSeq(strings.ReplaceAll(p, `\.`, "_"), ".") {
		if name == "" || strings.ContainsAny(name, `@!|{}[]()*?\"`) || strings.Contains(name, "#") && name != "#" {
			return fmt.Errorf("path %q: expected names with dots between them, such as metadata.sheets", p)
		}
	}
	return nil
}
