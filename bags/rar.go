package bags

import (
	"errors"
	"fmt"
	"io"

	"github.com/nwaples/rardecode/v2"
)

// decodeRar is the reading process's work.
func decodeRar(memory int64, data bool, src *sources, out frameWriter) error {
	z, err := rardecode.OpenReader("v.part1.rar", rardecode.FileSystem(&volumeFS{s: src}), rardecode.MaxDictionarySize(memory))
	if err != nil {
		return rarError("", err)
	}
	last := ""
	for {
		h, err := z.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return rarError(last, err)
		}
		if err := sendRar(z, h, data, out); err != nil {
			return err
		}
		last = h.Name
	}
}

func sendRar(z *rardecode.ReadCloser, f *rardecode.FileHeader, data bool, out frameWriter) error {
	h := frameHead{Name: []byte(f.Name), Folder: f.IsDir, Mode: f.Mode(), Time: f.ModificationTime, Size: f.UnPackedSize}
	switch {
	case f.UnKnownSize:
		h.Size = -1
	case h.Size < 0:
		h.Size = -2 // an impossible size
	}
	h.Rule, h.Detail = refuseMode(h.Mode, h.Folder)
	switch f.LinkType {
	case rardecode.LinkTypeHardLink, rardecode.LinkTypeFileCopy:
		h.Rule, h.Detail = RuleHardLink, refusedLink(hardLinks, f.LinkTarget)
	case rardecode.LinkTypeWindowsJunction:
		h.Rule, h.Detail = RuleSymlink, refusedLink(junctions, f.LinkTarget)
	case rardecode.LinkTypeUnixSymlink, rardecode.LinkTypeWindowsSymlink:
		h.Rule, h.Detail = RuleSymlink, refusedLink(symbolicLinks, f.LinkTarget)
	}
	if f.Encrypted && h.Rule == "" {
		h.Rule, h.Detail = RuleEncrypted, "the member is encrypted (AES)"
	}
	if err := out.putJSON(frameMember, h); err != nil || !data {
		return err
	}
	if h.Rule == "" && !h.Folder {
		read := &remember{r: z}
		if _, err := io.Copy(out, read); read.err != nil {
			return rarError(f.Name, read.err)
		} else if err != nil {
			return err
		}
	}
	return out.put(frameEnd, nil)
}

func rarError(member string, err error) error {
	e := &Error{Member: member, Rule: RuleDamaged, Detail: fmt.Sprintf("the data is damaged (%v)", err)}
	for _, known := range []struct {
		err    error
		rule   Rule
		detail string
	}{
		{rardecode.ErrArchiveEncrypted, RuleEncrypted, "the archive's list of members is encrypted (AES)"},
		{rardecode.ErrArchivedFileEncrypted, RuleEncrypted, "the member is encrypted (AES)"},
		{rardecode.ErrBadFileChecksum, RuleChecksum, "the data does not match its check sum"},
		{rardecode.ErrBadHeaderCRC, RuleChecksum, "a header does not match its check sum"},
		{rardecode.ErrMultiVolume, RuleMultiDisk, "the archive is one part of several, and the next is not there"},
		{rardecode.ErrBadVolumeNumber, RuleMultiDisk, "the parts of the archive are not in order"},
		{rardecode.ErrVerMismatch, RuleMultiDisk, "the parts are of different archives"},
		{rardecode.ErrDictionaryTooLarge, RuleMemory, "decompressing needs more memory than is allowed"},
		{rardecode.ErrUnsupportedDecoder, RuleMethod, "compressed by RAR 1.5, which is not supported"},
		{rardecode.ErrUnknownDecoder, RuleMethod, "compressed by a version of RAR that is not supported"},
		{rardecode.ErrMultipleDecoders, RuleMethod, "compressed by several versions of RAR, which is not supported in one archive"},
		{rardecode.ErrUnknownFilter, RuleMethod, "compressed through a filter that is not supported"},
		{rardecode.ErrUnknownVersion, RuleMethod, "a version of the format that is not supported"},
		{rardecode.ErrUnexpectedArcEnd, RuleTruncated, "the data ends early"},
		{rardecode.ErrShortFile, RuleTruncated, "the data ends early"},
		{rardecode.ErrDecoderOutOfData, RuleTruncated, "the data ends early"},
		{io.ErrUnexpectedEOF, RuleTruncated, "the data ends early"},
	} {
		if errors.Is(err, known.err) {
			e.Rule, e.Detail = known.rule, known.detail
			break
		}
	}
	return e
}
