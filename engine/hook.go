package engine

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bagpipe/layout/disk"
	"bagpipe/templates"
)

// installHooks makes a repository's hooks, which call a program, but for those that are there.
func installHooks(git, program string) error {
	if program == "" {
		return nil
	}
	entries, err := templates.Hooks.ReadDir("hooks")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, errRead := templates.Hooks.ReadFile(path.Join("hooks", e.Name()))
		err = errors.Join(err, errRead, installHook(filepath.Join(git, "hooks", e.Name()), string(text), program))
	}
	return err
}

func installHook(path, text, program string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	if err := disk.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return disk.WriteFile(path, []byte(strings.Replace(text, "PROGRAM", quoted, 1)), 0o755)
}
