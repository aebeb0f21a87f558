package rars

import (
	"errors"
	"fmt"
	"io"

	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"

	"github.com/nwaples/rardecode/v2"
)

// Decode writes the members of a rar as frames. It runs in the process that reads the
// archive.
func Decode(memory int64, data bool, src *volume.Joined, out frames.Writer) error {
	z, err := rardecode.OpenReader("v.part1.rar", rardecode.FileSystem(&volume.VolumeFS{S: src}), rardecode.MaxDictionarySize(memory))
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

func sendRar(z *rardecode.ReadCloser, f *rardecode.FileHeader, data bool, out frames.Writer) error {
	h := frames.Head{Name: []byte(f.Name), Folder: f.IsDir, Mode: f.Mode(), Time: f.ModificationTime, Size: f.UnPackedSize}
	switch {
	case f.UnKnownSize:
		h.Size = -1
	case h.Size < 0:
		h.Size = -2 // an impossible size
	}
	h.Rule, h.Detail = frames.RefuseMode(h.Mode, h.Folder)
	switch f.LinkType {
	case rardecode.LinkTypeHardLink, rardecode.LinkTypeFileCopy:
		h.Rule, h.Detail = files.RuleHardLink, files.RefusedLink(files.HardLinks, f.LinkTarget)
	case rardecode.LinkTypeWindowsJunction:
		h.Rule, h.Detail = files.RuleSymlink, files.RefusedLink(files.Junctions, f.LinkTarget)
	case rardecode.LinkTypeUnixSymlink, rardecode.LinkTypeWindowsSymlink:
		h.Rule, h.Detail = files.RuleSymlink, files.RefusedLink(files.SymbolicLinks, f.LinkTarget)
	}
	if f.Encrypted && h.Rule == "" {
		h.Rule, h.Detail = files.RuleEncrypted, "the member is encrypted (AES)"
	}
	if err := out.PutJSON(frames.Member, h); err != nil || !data {
		return err
	}
	if h.Rule == "" && !h.Folder {
		read := &frames.Remember{R: z}
		if _, err := io.Copy(out, read); read.Err != nil {
			return rarError(f.Name, read.Err)
		} else if err != nil {
			return err
		}
	}
	return out.Put(frames.End, nil)
}

func rarError(member string, err error) error {
	e := &files.Error{Member: member, Rule: files.RuleDamaged, Detail: fmt.Sprintf("the data is damaged (%v)", err)}
	for _, known := range []struct {
		err    error
		rule   files.Rule
		detail string
	}{
		{rardecode.ErrArchiveEncrypted, files.RuleEncrypted, "the archive's list of members is encrypted (AES)"},
		{rardecode.ErrArchivedFileEncrypted, files.RuleEncrypted, "the member is encrypted (AES)"},
		{rardecode.ErrBadFileChecksum, files.RuleChecksum, "the data does not match its check sum"},
		{rardecode.ErrBadHeaderCRC, files.RuleChecksum, "a header does not match its check sum"},
		{rardecode.ErrMultiVolume, files.RuleMultiDisk, "the archive is one part of several, and the next is not there"},
		{rardecode.ErrBadVolumeNumber, files.RuleMultiDisk, "the parts of the archive are not in order"},
		{rardecode.ErrVerMismatch, files.RuleMultiDisk, "the parts are of different archives"},
		{rardecode.ErrDictionaryTooLarge, files.RuleMemory, "decompressing needs more memory than is allowed"},
		{rardecode.ErrUnsupportedDecoder, files.RuleMethod, "compressed by RAR 1.5, which is not supported"},
		{rardecode.ErrUnknownDecoder, files.RuleMethod, "compressed by a version of RAR that is not supported"},
		{rardecode.ErrMultipleDecoders, files.RuleMethod, "compressed by several versions of RAR, which is not supported in one archive"},
		{rardecode.ErrUnknownFilter, files.RuleMethod, "compressed through a filter that is not supported"},
		{rardecode.ErrUnknownVersion, files.RuleMethod, "a version of the format that is not supported"},
		{rardecode.ErrUnexpectedArcEnd, files.RuleTruncated, "the data ends early"},
		{rardecode.ErrShortFile, files.RuleTruncated, "the data ends early"},
		{rardecode.ErrDecoderOutOfData, files.RuleTruncated, "the data ends early"},
		{io.ErrUnexpectedEOF, files.RuleTruncated, "the data ends early"},
	} {
		if errors.Is(err, known.err) {
			e.Rule, e.Detail = known.rule, known.detail
			break
		}
	}
	return e
}
