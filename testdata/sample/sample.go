package sample

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sample is one input that can be made.
type Sample struct {
	Name string // what one asks for
	File string // what it is called on disk when nothing else is said
	Text string // what it is, for people
	make func(path string) error
}

// All lists the samples, good ones first.
func All() []Sample {
	return slices.Concat(good(), hostile(), wanting())
}

// Find gives the sample of that name.
func Find(name string) (Sample, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Sample{}, fmt.Errorf("no sample %q", name)
}

// Make makes the sample at path, which must not be there; its parent must.
func (s Sample) Make(path string) error {
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		return fmt.Errorf("make sample %s: %s is there already", s.Name, path)
	}
	if err := s.make(path); err != nil {
		return fmt.Errorf("make sample %s: %w", s.Name, err)
	}
	return nil
}

// MakeIn makes samples in a folder. Each is named NAME or NAME=FILE, which calls
// it FILE; no names are all good samples.
func MakeIn(dir string, names []string) error {
	if len(names) == 0 {
		for _, s := range good() {
			names = append(names, s.Name)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, n := range names {
		name, file, renamed := strings.Cut(n, "=")
		s, err := Find(name)
		if err != nil {
			return err
		}
		if !renamed {
			file = s.File
		}
		if err := s.Make(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return nil
}

func good() []Sample {
	return []Sample{
		{"folder", "Letters of 1894", "a plain folder with sub-folders and names in six scripts", folder},
		{"file", "Lettre à Zoé.txt", "a loose file", looseFile},
		{"zip", "letters.zip", "the same folder as a zip", zipped},
		{"tar", "letters.tar", "as a tar", tarred(plain)},
		{"tar.gz", "letters.tar.gz", "as a tar.gz", tarred(gzipped)},
		{"tar.zst", "letters.tar.zst", "as a tar.zst", tarred(zstandard)},
		{"bag", "letters-bag", "a valid bag as a folder", bag},
		{"bag.zip", "letters-bag.zip", "a valid bag as a zip", bagZip},
		{"not-utf8", "latin-1", "a folder with a name that is not UTF-8", notUTF8Folder},
		{"not-utf8.zip", "latin-1.zip", "a zip with a name that is not UTF-8", notUTF8Zip},
	}
}
