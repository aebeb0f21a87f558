package tars

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// Block is the length of a tar's blocks.
const Block = 512

// BrokenStart gives the error of a compression that did not even begin.
func BrokenStart(n *notes.Notes, format string, err error) error {
	rule, detail, known := compress.DamageOfStream(err)
	if !known || rule == files.RuleTrailing {
		rule, detail = files.RuleDamaged, "no "+format+" header"
	}
	return n.Broken("", rule, detail, err)
}

// Broken gives the error met between members; last is the member before it. A broken
// rule stands.
func Broken(n *notes.Notes, last string, err error) error {
	var broken *files.Error
	if errors.As(err, &broken) {
		return broken
	}
	rule, detail := compress.Damage(err)
	if errors.Is(err, tar.ErrHeader) {
		rule, detail = files.RuleDamaged, "no valid tar header"
	}
	if last != "" {
		detail += ", in or after this member"
	}
	return n.Broken(last, rule, detail, err)
}

// ReadEnd reads the bytes behind the end mark: zeros up to the record's end, or data
// that is no part of the archive. over gives the limit that so many bytes break.
func ReadEnd(ctx context.Context, r io.Reader, over func(int64) (files.Rule, string), n *notes.Notes) error {
	buf := make([]byte, files.CopyBuffer)
	for total := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := r.Read(buf)
		if !volume.IsZero(buf[:got]) {
			return n.Broken("", files.RuleTrailing, "data follows the end of the archive", nil)
		}
		total += int64(got)
		if rule, detail := over(total); rule != "" {
			return n.Broken("", rule, detail, nil)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() == nil:
			return Broken(n, "", err)
		case err != nil:
			return err
		}
	}
}

// A Counter counts the bytes read. The tar reader gives io.EOF both at an end mark and
// where a file simply stops; only after an end mark has it read a block beyond the last
// member.
type Counter struct {
	R    io.Reader
	Seen int64
}

// Read reads and counts.
func (c *Counter) Read(p []byte) (int, error) {
	n, err := c.R.Read(p)
	c.Seen += int64(n)
	return n, err
}

// RoundUp gives the next multiple of Block.
func RoundUp(n int64) int64 { return (n + Block - 1) / Block * Block }

// The types that archive/tar has no name for.
const (
	TypeLabel     = 'V' // GNU: the volume's label, without content
	TypeContinued = 'M' // GNU: the rest of a file of the volume before
	TypeDumpdir   = 'D' // GNU, incremental: a folder, with a list of what was in it
	TypeSolaris   = 'X' // Solaris: what is x elsewhere
)

// IsSparse reports whether the member has holes.
func IsSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	_, pax := h.PAXRecords["GNU.sparse.realsize"]
	_, old := h.PAXRecords["GNU.sparse.size"]
	return pax || old
}
