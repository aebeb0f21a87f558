package zips

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/files"

	"github.com/klauspost/compress/zip"
)

// CheckMember gives the mode of a member that can be unpacked, and reports whether it is
// a folder.
func CheckMember(f *zip.File, e Entry, n *notes.Notes) (mode fs.FileMode, dir bool, err error) {
	if f.Name != e.name || f.Method != e.method {
		return 0, false, n.Broken(e.Text, files.RuleHeaders, "the directory reads in two ways", nil)
	}
	if e.flags&encryptFlags != 0 || e.method == methodAES {
		return 0, false, n.Broken(e.Text, files.RuleEncrypted, "the member is encrypted ("+encryption(e)+")", nil)
	}
	if !slices.Contains([]uint16{methodStore, methodDefl, methodBzip2, methodZstd, methodXz}, f.Method) {
		return 0, false, n.Broken(e.Text, files.RuleMethod, "compressed by "+methodName(f.Method)+", which is not supported", nil)
	}
	mode = f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0, false, n.Broken(e.Text, files.RuleSymlink, files.RefusedLink(files.SymbolicLinks, ""), nil)
	case mode&(fs.ModeType&^fs.ModeDir) != 0:
		return 0, false, n.Broken(e.Text, files.RuleSpecial, "devices and FIFOs are not taken", nil)
	}
	dir = mode.IsDir() || strings.HasSuffix(e.Text, "/")
	if dir && f.UncompressedSize64 > 0 {
		return 0, false, n.Broken(e.Text, files.RuleConflict, "a folder that holds data", nil)
	}
	return mode, dir, nil
}

func encryption(e Entry) string {
	switch {
	case e.method == methodAES:
		return "AES"
	case e.flags&flagMasked != 0:
		return "with an encrypted directory"
	case e.flags&flagStrong != 0:
		return "PKWARE strong encryption, " + methodName(e.method)
	}
	return "PKWARE, " + methodName(e.method)
}

func methodName(m uint16) string {
	names := map[uint16]string{
		0: "stored", 1: "shrink", 2: "reduce", 3: "reduce", 4: "reduce", 5: "reduce", 6: "implode", 8: "deflate", 9: "deflate64",
		10: "PKWARE DCL", 12: "bzip2", 14: "LZMA", 16: "CMPSC", 18: "TERSE", 19: "LZ77", 92: "copy", 93: "zstd", 94: "MP3", 95: "xz",
		96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES",
	}
	if n := names[m]; n != "" {
		return fmt.Sprintf("method %d (%s)", m, n)
	}
	return fmt.Sprintf("method %d", m)
}

// within fits a compression into the zip library.
func within(open func(io.Reader, int64) (io.ReadCloser, error), memory int64) zip.Decompressor {
	return func(r io.Reader) io.ReadCloser {
		z, err := open(r, memory)
		if err != nil {
			return io.NopCloser(failing{err})
		}
		return z
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
