package sevens

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"

	"github.com/bodgit/sevenzip"
)

const (
	Magic    = "7z\xbc\xaf\x27\x1c"
	StartLen = 32 // bytes of the start header
)

// Survey compares the archive's length with its start header, in this process. Names are
// UTF-16 and need no code page.
func Survey(v *volume.Volumes, n *notes.Notes) ([]string, error) {
	le := binary.LittleEndian
	b := make([]byte, StartLen)
	if _, err := v.Whole().ReadAt(b, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, n.Broken("", files.RuleTruncated, "the data ends early", err)
		}
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(Magic)) {
		return nil, n.Broken("", files.RuleDamaged, "no 7z header", nil)
	}
	if crc32.ChecksumIEEE(b[12:]) != le.Uint32(b[8:]) {
		return nil, n.Broken("", files.RuleChecksum, "the start header does not match its check sum", nil)
	}
	offset, size, have := le.Uint64(b[12:]), le.Uint64(b[20:]), uint64(v.Bytes())
	switch {
	case offset > have || size > have || StartLen+offset+size > have:
		return nil, n.Broken("", files.RuleTruncated, fmt.Sprintf("%d bytes where its header promises %d", have, StartLen+offset+size), nil)
	case StartLen+offset+size < have:
		return nil, sevenZipRest(v, int64(StartLen+offset+size), int64(have), n)
	}
	return nil, nil
}

// sevenZipRest looks at what follows the archive, as a rar's survey does.
func sevenZipRest(v *volume.Volumes, at, have int64, n *notes.Notes) error {
	zeros, err := volume.OnlyZeros(io.NewSectionReader(v.Whole(), at, have-at))
	if err != nil {
		return err
	}
	if !zeros {
		return n.Broken("", files.RuleTrailing, fmt.Sprintf("%d bytes follow the end of the archive", have-at), nil)
	}
	n.Warn("", fmt.Sprintf("%d zeros follow the end of the archive", have-at))
	return nil
}

// Decode writes the members of a 7z as frames. It runs in the process that reads the
// archive.
func Decode(data bool, src *volume.Joined, out frames.Writer) error {
	refuseMethods()
	wholeDeflate()
	start := make([]byte, StartLen)
	if _, err := src.ReadAt(start, 0); err != nil {
		return sevenZipError("", err)
	}
	if binary.LittleEndian.Uint64(start[20:]) == 0 {
		return nil // an archive without members is its start header alone
	}
	whole, err := withoutProperties(src, start)
	if err != nil {
		return sevenZipError("", err)
	}
	z, err := sevenzip.NewReader(whole, src.Total())
	if err != nil {
		return sevenZipError("", err)
	}
	parents := map[string]bool{}
	for _, f := range z.File {
		for d := path.Dir(strings.TrimSuffix(f.Name, "/")); !parents[d] && d != "." && d != "/"; d = path.Dir(d) {
			parents[d] = true
		}
	}
	for _, f := range z.File {
		if err := sendSevenZip(f, parents, data, out); err != nil {
			return err
		}
	}
	return nil
}

func sendSevenZip(f *sevenzip.File, parents map[string]bool, data bool, out frames.Writer) error {
	mode := f.Mode()
	h := frames.Head{Name: []byte(f.Name), Mode: mode, Time: f.Modified, Size: int64(min(f.UncompressedSize, 1<<62))}
	// Without attributes a folder is known only by what is in it.
	h.Folder = mode.IsDir() || f.Attributes == 0 && f.UncompressedSize == 0 && parents[f.Name]
	h.Rule, h.Detail = frames.RefuseMode(mode, h.Folder)
	if f.CRC32 != 0 && !h.Folder {
		h.Sum = &f.CRC32
	}
	if err := out.PutJSON(frames.Member, h); err != nil || !data {
		return err
	}
	if h.Rule == "" && !h.Folder {
		if err := copySevenZip(f, out); err != nil {
			return err
		}
	}
	return out.Put(frames.End, nil)
}

func copySevenZip(f *sevenzip.File, out frames.Writer) error {
	r, err := f.Open()
	if err != nil {
		return sevenZipError(f.Name, err)
	}
	read := &frames.Remember{R: r}
	if _, err := io.Copy(out, read); err != nil {
		if read.Err != nil {
			return sevenZipError(f.Name, read.Err)
		}
		return err
	}
	return r.Close()
}

// methodError names a method that is not decoded.
type methodError struct {
	rule files.Rule
	name string
}

func (m methodError) Error() string { return m.name }

// refuseMethods makes the library answer by name for what it cannot decode, and
// for encryption, which it would try to undo without a password.
func refuseMethods() {
	for _, m := range []struct {
		id   string
		rule files.Rule
		name string
	}{
		{"\x06\xf1\x07\x01", files.RuleEncrypted, "AES-256"},
		{"\x06\xf1\x01\x01", files.RuleEncrypted, "ZipCrypto"},
		{"\x06\xf1\x03\x03", files.RuleEncrypted, "RAR29 AES"},
		{"\x04\x01\x09", files.RuleMethod, "deflate64"},
		{"\x04\x01\x01", files.RuleMethod, "shrink"},
		{"\x04\x01\x06", files.RuleMethod, "implode"},
		{"\x04\x03\x01", files.RuleMethod, "RAR 1.5"},
		{"\x04\x03\x02", files.RuleMethod, "RAR 2.0"},
		{"\x04\x03\x03", files.RuleMethod, "RAR 2.9"},
		{"\x04\xf7\x11\x05", files.RuleMethod, "LZ5"},
		{"\x04\xf7\x11\x06", files.RuleMethod, "lizard"},
		{"\x02\x03\x02", files.RuleMethod, "swap2"},
		{"\x02\x03\x04", files.RuleMethod, "swap4"},
		{"\x03\x03\x04\x01", files.RuleMethod, "IA-64 filter"},
		{"\x03\x03\x07\x01", files.RuleMethod, "ARM Thumb filter"},
		{"\x08", files.RuleMethod, "ARM Thumb filter"},
		{"\x06", files.RuleMethod, "IA-64 filter"},
		{"\x0b", files.RuleMethod, "RISC-V filter"},
	} {
		refused := methodError{m.rule, m.name}
		sevenzip.RegisterDecompressor([]byte(m.id), func([]byte, uint64, []io.ReadCloser) (io.ReadCloser, error) { return nil, refused })
	}
}

func sevenZipError(member string, err error) error {
	e := &files.Error{Member: member, Rule: files.RuleDamaged, Detail: "the data is damaged (" + err.Error() + ")"}
	var refused methodError
	var reading *sevenzip.ReadError
	switch text := err.Error(); {
	case errors.As(err, &refused) && refused.rule == files.RuleEncrypted:
		e.Rule, e.Detail = files.RuleEncrypted, what(member, "is encrypted")+" ("+refused.name+")"
	case errors.As(err, &refused):
		e.Rule, e.Detail = files.RuleMethod, "compressed by "+refused.name+", which is not supported"
	case errors.As(err, &reading) && reading.Encrypted:
		e.Rule, e.Detail = files.RuleEncrypted, what(member, "is encrypted")
	case strings.Contains(text, "unsupported compression algorithm"):
		e.Rule, e.Detail = files.RuleMethod, "compressed by a method that is not supported"
	case strings.HasSuffix(text, "unexpected id"): // the library does not tell the two apart
		e.Detail = "its list of members is damaged, or has what is not supported, as an archive of changes has (anti-items)"
	case strings.Contains(text, "exceeds configured dictionary capacity"), strings.Contains(text, "dictionary capacity is out of range"):
		e.Rule, e.Detail = files.RuleMemory, "decompressing needs more memory than is allowed"
	case strings.Contains(text, "checksum error"):
		e.Rule, e.Detail = files.RuleChecksum, "the data does not match its check sum"
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Rule, e.Detail = files.RuleTruncated, "the data ends early"
	}
	return e
}

func what(member, is string) string {
	if member == "" {
		return "the archive's list of members " + is
	}
	return "the member " + is
}
