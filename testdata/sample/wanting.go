package sample

import (
	"bytes"
	"fmt"
	"os"
)

// wanting are inputs that are damaged or lack something.
func wanting() []Sample {
	return []Sample{
		{"bag-wrong-digest", "letters-bag-changed", "a bag with a file that was changed afterwards", bagWrongDigest},
		{"bag-incomplete", "letters-bag-incomplete", "a bag with a payload file missing", bagIncomplete},
		{"truncated.tar.gz", "truncated.tar.gz", "a tar.gz cut in the middle", truncated},
		{"corrupt.zip", "corrupt.zip", "a zip with a changed byte", corruptZip},
		{"not-a.zip", "not-a.zip", "a text that is called a zip", func(p string) error { return writeFile(p, []byte("no archive at all\n")) }},
		{"empty-folder", "empty-folder", "an empty folder", func(p string) error { return os.Mkdir(p, 0o777) }},
		{"empty-file", "empty.txt", "a file without bytes", func(p string) error { return writeFile(p, nil) }},
		{"empty.zip", "empty.zip", "a zip without members", zipOf()},
	}
}

func truncated(path string) error {
	data, err := tarOfMaterial(gzipped)
	if err != nil {
		return err
	}
	return writeFile(path, data[:len(data)/2])
}

// corruptZip changes a byte of the second member's data.
func corruptZip(path string) error {
	if err := zipOf(good1, entry{"b.txt", []byte("this member will not match its check sum\n")})(path); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := bytes.Index(data, []byte("b.txt"))
	if at < 0 {
		return fmt.Errorf("the zip does not hold b.txt")
	}
	data[at+len("b.txt")+24] ^= 0x40
	return writeFile(path, data)
}
