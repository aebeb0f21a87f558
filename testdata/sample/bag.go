package sample

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/bags"
	"bagpipe/bags/tagfile"
)

// bag makes a bag of the material.
func bag(path string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".sample-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	payload := filepath.Join(tmp, "payload")
	if err := folder(payload); err != nil {
		return err
	}
	_, err = bags.Create(context.Background(), bags.CreateOptions{
		Payload: payload, Dest: path, Date: made, Agent: "Bagpipe sample",
		Info: []tagfile.Field{
			{Label: "Source-Organization", Value: "The Reading Room"},
			{Label: "External-Description", Value: "Six letters, their register, and two plates"},
			{Label: "External-Identifier", Value: "reading-room/1894"},
		},
	})
	if err != nil {
		return err
	}
	return ageFolders(path)
}

func bagZip(path string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".sample-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	dir := filepath.Join(tmp, "letters-bag")
	if err := bag(dir); err != nil {
		return err
	}
	all, err := readTree(dir)
	if err != nil {
		return err
	}
	return writeZip(path, under("letters-bag/", all))
}

func readTree(dir string) (all []entry, err error) {
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, p)
		all = append(all, entry{p, data})
		return err
	})
	return all, err
}

// changedFile is the payload file that the bad bags are bad at.
const changedFile = "data/register/register.csv"

// bagWrongDigest is a bag one of whose files was changed after it was made, to
// other bytes of the same length.
func bagWrongDigest(path string) error {
	if err := bag(path); err != nil {
		return err
	}
	file := filepath.Join(path, changedFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed := bytes.Replace(data, []byte("1894-03-03"), []byte("1895-03-03"), 1)
	if bytes.Equal(changed, data) {
		return fmt.Errorf("%s has not the date that is to be changed", changedFile)
	}
	if err := writeFile(file, changed); err != nil {
		return err
	}
	return ageFolders(path)
}

func bagIncomplete(path string) error {
	if err := bag(path); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, changedFile)); err != nil {
		return err
	}
	return ageFolders(path)
}
