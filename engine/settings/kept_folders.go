package settings

import (
	"path/filepath"

	"bagpipe/engine/roots"
	"bagpipe/layout"
)

// keptBy are the folders of the workspace root that are its own.
func keptBy(root string) (dirs []string) {
	for _, dir := range layout.OwnDirs() {
		dirs = append(dirs, filepath.Join(root, dir))
	}
	return dirs
}

// amidst is the first of dirs that a path lies in, or is; "": none.
func amidst(path string, dirs []string) (dir string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at := roots.Locate(abs)
	for _, dir := range dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return "", err
		}
		if at.LiesIn(dir) {
			return roots.Resolve(dir), nil
		}
	}
	return "", nil
}
