package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/archive/internal/sevens"
	"bagpipe/bags/archive/internal/tars"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/layout/disk"
)

// Format is an archive's format.
type Format string

// The formats. None is everything that is not unpacked.
const (
	None     Format = ""
	Zip      Format = "zip"
	Tar      Format = "tar"
	TarGzip  Format = "tar.gz"
	TarZstd  Format = "tar.zst"
	TarBzip2 Format = "tar.bz2"
	TarXz    Format = "tar.xz"
	TarLz4   Format = "tar.lz4"
	SevenZip Format = "7z"
	Rar      Format = "rar"
)

// Sniff tells which archive the file at path is. A folder, a link or a special
// file is none and is not opened.
func Sniff(path string) (Format, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return None, nil
	}
	f, err := disk.Open(path)
	if err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	defer f.Close()
	src := &volume.File{F: f}
	format := sniff(src, filepath.Base(path))
	if err := src.Failure(); err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	return format, nil
}

func sniff(r io.ReadSeeker, name string) Format {
	head := make([]byte, tars.Block)
	n, _ := io.ReadFull(r, head)
	head = head[:n]
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return None
	}
	if format, sure := SniffFirst(name, head); sure {
		return format
	}
	for _, c := range compress.All() {
		if c.Is(head) {
			return sniffCompressed(r, name, c)
		}
	}
	return None
}

// SniffFirst tells by a file's name and its first bytes, 512 or all, which archive it is. sure is
// false for what is compressed: Sniff looks whether a tar is in it.
func SniffFirst(name string, head []byte) (f Format, sure bool) {
	head = head[:min(len(head), tars.Block)]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")),
		bytes.HasPrefix(head, []byte("PK\x07\x08PK\x03\x04")):
		if isDocument(name, head) {
			return None, true
		}
		return Zip, true
	case isTarHeader(head):
		return Tar, true
	case bytes.HasPrefix(head, []byte(sevens.Magic)):
		return unlessDocument(name, SevenZip), true
	case bytes.HasPrefix(head, []byte(rars.Magic4)), bytes.HasPrefix(head, []byte(rars.Magic5)):
		return unlessDocument(name, Rar), true
	}
	for _, c := range compress.All() {
		if c.Is(head) {
			return None, false
		}
	}
	return FormatOfName(name), true
}

func sniffCompressed(r io.Reader, name string, c compress.Compression) Format {
	z, err := c.Open(r, compress.MaxWindow)
	if err != nil {
		return onlyIf(name, tarIn(c))
	}
	defer z.Close()
	if holdsTar(z) {
		return tarIn(c)
	}
	return onlyIf(name, tarIn(c))
}

// tarIn is the format of a tar in a compression.
func tarIn(c compress.Compression) Format { return Tar + "." + Format(c.Name) }

// compressed gives the compression around a tar; ok is false for a plain one.
func (f Format) compressed() (c compress.Compression, ok bool) {
	return compress.Of(strings.TrimPrefix(string(f), string(Tar)+"."))
}

func unlessDocument(name string, f Format) Format {
	if documentExtensions[strings.ToLower(filepath.Ext(name))] {
		return None
	}
	return f
}

func holdsTar(r io.Reader) bool {
	block := make([]byte, tars.Block)
	n, _ := io.ReadFull(r, block)
	return isTarHeader(block[:n])
}

// isTarHeader checks a header's sum, which random data passes once in some
// hundred thousand times; the old v7 format has nothing else. Two zero blocks
// are an archive without members only by name.
func isTarHeader(b []byte) bool {
	if len(b) < tars.Block || b[0] == 0 {
		return false
	}
	field := strings.Trim(string(b[148:156]), " \x00")
	want := int64(0)
	for _, c := range []byte(field) {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	var unsigned, signed int64
	for i, c := range b[:tars.Block] {
		if 148 <= i && i < 156 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return field != "" && (want == unsigned || want == signed)
}

// suffixes are the ends of archives' names, the longer before the shorter.
func suffixes() []struct {
	suffix string
	format Format
} {
	return []struct {
		suffix string
		format Format
	}{
		{".zip", Zip}, {".tar.gz", TarGzip}, {".tgz", TarGzip}, {".tar.zst", TarZstd}, {".tzst", TarZstd},
		{".tar.bz2", TarBzip2}, {".tbz2", TarBzip2}, {".tbz", TarBzip2}, {".tar.xz", TarXz}, {".txz", TarXz},
		{".tar.lz4", TarLz4}, {".tar", Tar}, {".7z", SevenZip}, {".7z.001", SevenZip}, {".rar", Rar},
	}
}

// FormatOfName gives the format that a file's name ends in. It is asked only where the
// bytes say nothing.
func FormatOfName(name string) Format {
	lower := strings.ToLower(name)
	for _, e := range suffixes() {
		if strings.HasSuffix(lower, e.suffix) && len(lower) > len(e.suffix) {
			return e.format
		}
	}
	return None
}

var partNumber = regexp.MustCompile(`(?i)\.part0*1$`)

// FolderName gives the name of the folder that an archive is unpacked into, where
// nobody says: its name without what tells that it is an archive.
func FolderName(archive string) string {
	name := filepath.Base(archive)
	lower := strings.ToLower(name)
	for _, e := range suffixes() {
		if strings.HasSuffix(lower, e.suffix) && len(lower) > len(e.suffix) {
			return partNumber.ReplaceAllString(name[:len(name)-len(e.suffix)], "")
		}
	}
	return name + ".unpacked"
}

func onlyIf(name string, f Format) Format {
	if FormatOfName(name) == f {
		return f
	}
	return None
}
