package bags

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/bags/tagfile"
)

// FindBag gives the folder of the bag that dir is or holds: dir itself where it
// has a bagit.txt, or its only sub-folder where that has one. Beside the
// sub-folder nothing may stand but what macOS and Windows leave behind. ok is
// false where there is no bag.
func FindBag(dir string) (bag string, ok bool, err error) {
	if has, err := hasDeclaration(dir); err != nil || has {
		return dir, has, err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", false, fmt.Errorf("look for a bag: %w", err)
	}
	for _, n := range names {
		if isNoise(n.Name()) {
			continue
		}
		if !n.IsDir() || bag != "" {
			return "", false, nil
		}
		bag = filepath.Join(dir, n.Name())
	}
	if bag == "" {
		return "", false, nil
	}
	has, err := hasDeclaration(bag)
	if err != nil || !has {
		return "", false, err
	}
	return bag, true, nil
}

// hasDeclaration does not follow a link: a bagit.txt that is one is no
// declaration.
func hasDeclaration(dir string) (bool, error) {
	info, err := os.Lstat(filepath.Join(dir, tagfile.DeclarationFile))
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a bag: %w", err)
	}
	return info.Mode().IsRegular(), nil
}

func isNoise(name string) bool {
	switch strings.ToLower(name) {
	case ".ds_store", "thumbs.db", "desktop.ini", "__macosx":
		return true
	}
	return strings.HasPrefix(name, "._")
}
