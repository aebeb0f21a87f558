package sample

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/testdata/content"
)

// made is the modification time of everything in a sample.
var made = time.Date(1994, 11, 20, 10, 0, 0, 0, time.UTC)

// entry is one file of the material, by its path.
type entry struct {
	path string
	data []byte
}

// material lists the files of testdata/content, sorted by path.
func material() (all []entry, err error) {
	err = fs.WalkDir(content.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := content.Files.ReadFile(p)
		all = append(all, entry{p, data})
		return err
	})
	return all, err
}

func folder(path string) error {
	all, err := material()
	if err != nil {
		return err
	}
	return writeTree(path, all)
}

func looseFile(path string) error {
	data, err := content.Files.ReadFile("letters/Lettre à Zoé.txt")
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func notUTF8Folder(path string) error {
	return writeTree(path, []entry{
		{"plain.txt", []byte("a name every system reads\n")},
		{latin1Name, []byte("a name from an old disk\n")},
	})
}

// latin1Name is "Grüße.txt" in ISO 8859-1.
const latin1Name = "Gr\xfc\xdfe.txt"

func writeTree(dir string, all []entry) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, e := range all {
		to := filepath.Join(dir, filepath.FromSlash(e.path))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := writeFile(to, e.data); err != nil {
			return err
		}
	}
	return ageFolders(dir)
}

func writeFile(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return err
	}
	return os.Chtimes(path, made, made)
}

// ageFolders comes last, as making a file changes its folder's time.
func ageFolders(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chtimes(p, made, made)
	})
}
