package compress

import (
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/files"
	"bagpipe/layout/deflate"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"
)

// Damage turns a decoder's error into a rule. The caller has made sure that the disk
// could be read.
func Damage(err error) (files.Rule, string) {
	if rule, detail, known := DamageOfStream(err); known {
		return rule, detail
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return files.RuleTruncated, "the data ends early"
	case errors.Is(err, errSum), errors.Is(err, zip.ErrChecksum), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return files.RuleChecksum, "the data does not match its check sum"
	case errors.Is(err, zip.ErrFormat):
		return files.RuleSize, "the data is not as long as the archive says"
	case errors.Is(err, zip.ErrAlgorithm):
		return files.RuleMethod, err.Error()
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return files.RuleMemory, "decompressing needs more memory than is allowed"
	}
	if errors.Is(err, deflate.ErrDamaged) {
		return files.RuleDamaged, "the compressed data is damaged"
	}
	return files.RuleDamaged, err.Error()
}

const foreignData = "data that is no part of the archive follows"

// DamageOfStream turns the error of a compression's reader into a rule; known is false
// for any other error.
func DamageOfStream(err error) (files.Rule, string, bool) {
	var broken bzip2.StructuralError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, xz.ErrFormat), errors.Is(err, lz4.ErrInvalidFrame):
		return files.RuleTrailing, foreignData, true
	case errors.Is(err, xz.ErrBuf):
		return files.RuleTruncated, "the data ends early", true
	case errors.Is(err, xz.ErrMemlimit):
		return files.RuleMemory, "decompressing needs more memory than is allowed", true
	case errors.Is(err, xz.ErrOptions), errors.Is(err, xz.ErrUnsupportedCheck):
		return files.RuleMethod, err.Error(), true
	case errors.Is(err, lz4.ErrInvalidBlockChecksum), errors.Is(err, lz4.ErrInvalidFrameChecksum), errors.Is(err, lz4.ErrInvalidHeaderChecksum):
		return files.RuleChecksum, "the data does not match its check sum", true
	case errors.As(err, &broken):
		switch string(broken) {
		case "bad magic value in continuation file":
			return files.RuleTrailing, foreignData, true
		case "file checksum mismatch", "block checksum mismatch":
			return files.RuleChecksum, "the data does not match its check sum", true
		}
		return files.RuleDamaged, fmt.Sprintf("the compressed data is damaged: %s", string(broken)), true
	}
	return "", "", false
}

// Broken gives the error of a member whose decoder gave err; a broken rule stands.
func Broken(n *notes.Notes, member string, err error) error {
	var broken *files.Error
	if errors.As(err, &broken) {
		return broken
	}
	rule, detail := Damage(err)
	return n.Broken(member, rule, detail, err)
}
