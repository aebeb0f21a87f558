package bags

import (
	"archive/tar"
	"context"
	"errors"
	"io"
)

// This file is what unpacking a tar and validating a bag in one have in common.

const tarBlock = 512

// damageAtStart names what kept a compression from even beginning.
func damageAtStart(format string, err error) (Rule, string) {
	rule, detail, known := damageOfStream(err)
	if !known || rule == RuleTrailing {
		return RuleDamaged, "no " + format + " header"
	}
	return rule, detail
}

// damageOfTar names an error between members; last is the member before it.
func damageOfTar(last string, err error) (Rule, string) {
	rule, detail := damage(err)
	if errors.Is(err, tar.ErrHeader) {
		rule, detail = RuleDamaged, "no valid tar header"
	}
	if last != "" {
		detail += ", in or after this member"
	}
	return rule, detail
}

// readTarEnd reads what follows the end mark: zeros up to the record's end, or
// something that is no part of the archive. over tells which limit so many bytes
// break.
func readTarEnd(ctx context.Context, r io.Reader, over func(int64) (Rule, string)) (Rule, string, error) {
	buf := make([]byte, CopyBuffer)
	for total := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", "", err
		}
		n, err := r.Read(buf)
		if !isZero(buf[:n]) {
			return RuleTrailing, "data follows the end of the archive", nil
		}
		total += int64(n)
		if rule, detail := over(total); rule != "" {
			return rule, detail, nil
		}
		if errors.Is(err, io.EOF) {
			return "", "", nil
		}
		if err != nil {
			return "", "", err
		}
	}
}

// countReader counts what was read. The tar reader says EOF both at an end mark
// and where a file simply stops; only after an end mark has it read a block
// beyond the last member.
type countReader struct {
	r    io.Reader
	read int64
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	return n, err
}

func roundUp(n int64) int64 { return (n + tarBlock - 1) / tarBlock * tarBlock }

// The types that archive/tar has no name for.
const (
	typeLabel     = 'V' // GNU: the volume's label, without content
	typeContinued = 'M' // GNU: the rest of a file of the volume before
	typeDumpdir   = 'D' // GNU, incremental: a folder, with a list of what was in it
	typeSolaris   = 'X' // Solaris: what is x elsewhere
)

func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	_, pax := h.PAXRecords["GNU.sparse.realsize"]
	_, old := h.PAXRecords["GNU.sparse.size"]
	return pax || old
}
