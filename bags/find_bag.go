package bags

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags/tagfile"
)

// FindBag gives the folder of the bag that dir is or holds: dir itself where it
// has a bagit.txt, or its only sub-folder where that has one. Beside the
// sub-folder nothing may stand but what macOS and Windows leave behind. ok is
// false where there is no bag.
func FindBag(dir string) (bag string, ok bool, err error) { return find(dir, hasDeclaration) }

// FindUndeclared gives, as FindBag does, the folder of what would be a bag if it had a
// bagit.txt: it has data/ and a payload manifest.
func FindUndeclared(dir string) (bag string, ok bool, err error) { return find(dir, isUndeclared) }

func find(dir string, is func(dir string) (bool, error)) (bag string, ok bool, err error) {
	if has, err := is(dir); err != nil || has {
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
	has, err := is(bag)
	if err != nil || !has {
		return "", false, err
	}
	return bag, true, nil
}

func isUndeclared(dir string) (bool, error) {
	if has, err := hasDeclaration(dir); err != nil || has {
		return false, err
	}
	if info, err := os.Lstat(filepath.Join(dir, tagfile.PayloadDir)); err != nil || !info.IsDir() {
		return false, nil // also where it cannot be told
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("look for a bag: %w", err)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		is, _ := filepath.Match("manifest-*.txt", e.Name())
		return is && e.Type().IsRegular()
	}), nil
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
