package engine

import (
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// hookName is Git's name of what is asked before a push lands.
const hookName = "hooks/pre-receive"

// hook asks for the settings that are pushed to be checked. A workspace whose program is
// gone takes pushes as it did: what is broken in them does not come into force.
const hook = `#!/bin/sh
# Made by bagpipe init: a push with settings that are not sound is refused.
bagpipe=PROGRAM
[ -x "$bagpipe" ] || bagpipe=$(command -v bagpipe) || {
	echo 'bagpipe is not there: the settings were not checked' >&2
	exit 0
}
exec "$bagpipe" check --push "$(dirname "$(pwd -P)")"
`

// installHook makes the hook, which calls a program, unless there is one.
func installHook(root, program string) error {
	if program == "" {
		return nil
	}
	path := filepath.Join(root, layout.RepositoryDir, filepath.FromSlash(hookName))
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	if err := disk.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return disk.WriteFile(path, []byte(strings.Replace(hook, "PROGRAM", quoted, 1)), 0o755)
}
