package sample

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"syscall"
)

// hostile are inputs that would do harm if they were believed.
func hostile() []Sample {
	return []Sample{
		{"parent.zip", "parent.zip", "a zip with a name that climbs out with ../", zipOf(good1, entry{"../../escaped.txt", []byte("out\n")})},
		{"parent.tar", "parent.tar", "a tar with a name that climbs out with ../", tarOf(text("a.txt"), text("b/../../escaped.txt"))},
		{"absolute.zip", "absolute.zip", "a zip with an absolute name", zipOf(good1, entry{"/etc/escaped.txt", []byte("out\n")})},
		{"absolute.tar", "absolute.tar", "a tar with an absolute name", tarOf(text("a.txt"), text("/etc/escaped.txt"))},
		{"link.tar", "link.tar", "a tar with a symbolic link", tarOf(text("a.txt"), member{head: tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc/passwd"}})},
		{"hardlink.tar", "hardlink.tar", "a tar with a hard link", tarOf(text("a.txt"), member{head: tar.Header{Typeflag: tar.TypeLink, Name: "link", Linkname: "a.txt"}})},
		{"device.tar", "device.tar", "a tar with a device", tarOf(text("a.txt"), member{head: tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8}})},
		{"duplicate.zip", "duplicate.zip", "a zip with one name twice", zipOf(good1, good1)},
		{"duplicate.tar", "duplicate.tar", "a tar with one name twice", tarOf(text("a.txt"), text("a.txt"))},
		{"conflict.tar", "conflict.tar", "a tar with a file where a folder stands", tarOf(text("a/b.txt"), text("a"))},
		{"bomb.zip", "bomb.zip", "a zip of 96 MiB of zeros", zipOf(good1, entry{"zeros", make([]byte, bombSize)})},
		{"bomb.tar.gz", "bomb.tar.gz", "a tar.gz of 96 MiB of zeros", bombTar},
		{"many.zip", "many.zip", "a zip of 300 files", manyZip},
		{"link-folder", "with-link", "a folder with a symbolic link", linkFolder},
		{"fifo-folder", "with-fifo", "a folder with a named pipe", fifoFolder},
	}
}

var good1 = entry{"a.txt", []byte("as it should be\n")}

const bombSize = 96 << 20

func zipOf(all ...entry) func(string) error {
	return func(path string) error { return writeZip(path, all) }
}

func tarOf(members ...member) func(string) error {
	return func(path string) error {
		data, err := makeTar(members, plain)
		if err != nil {
			return err
		}
		return writeFile(path, data)
	}
}

func text(name string) member {
	return member{tar.Header{Typeflag: tar.TypeReg, Name: name}, []byte(name + "\n")}
}

func bombTar(path string) error {
	data, err := makeTar([]member{text("a.txt"), {tar.Header{Typeflag: tar.TypeReg, Name: "zeros"}, make([]byte, bombSize)}}, gzipped)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func manyZip(path string) error {
	var all []entry
	for i := range 300 {
		all = append(all, entry{"n" + string(rune('a'+i/26)) + string(rune('a'+i%26)), bytes.Repeat([]byte{'x'}, i)})
	}
	return writeZip(path, all)
}

func linkFolder(path string) error {
	if err := writeTree(path, []entry{good1}); err != nil {
		return err
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "link")); err != nil {
		return err
	}
	return ageFolders(path)
}

func fifoFolder(path string) error {
	if err := writeTree(path, []entry{good1}); err != nil {
		return err
	}
	if err := syscall.Mkfifo(filepath.Join(path, "pipe"), 0o666); err != nil {
		return err
	}
	return ageFolders(path)
}
