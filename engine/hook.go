package engine

import (
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout/disk"
	"bagpipe/templates"
)

// hookName is Git's name of what is asked before a push lands.
const hookName = "hooks/pre-receive"

// installHook makes a repository's hook, which calls a program, unless there is one.
func installHook(git, program string) error {
	if program == "" {
		return nil
	}
	path := filepath.Join(git, filepath.FromSlash(hookName))
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	if err := disk.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return disk.WriteFile(path, []byte(strings.Replace(templates.Hook, "PROGRAM", quoted, 1)), 0o755)
}
