package engine

import (
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/templates"
)

// hookName is Git's name of what is asked before a push lands.
const hookName = "hooks/pre-receive"

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
	return disk.WriteFile(path, []byte(strings.Replace(templates.Hook, "PROGRAM", quoted, 1)), 0o755)
}
