package rars

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// This file walks over a rar's blocks beside the library's own reading, for what
// the library does not tell. The rules are:
//
//   - the archive ends with its end block, and the file with the archive, zeros
//     aside; rars from before RAR 3 have no end block;
//   - a part that is not the last is followed by the next, and the first part is
//     the first;
//   - the names that are not Unicode are collected, for their code page;
//   - members compressed by one version only are in an archive, as the library has
//     one decoder for each.

// Survey checks the frame of every part, opens the further parts, and gives the names
// that are in no known encoding.
func Survey(v *volume.Volumes, most int64, n *notes.Notes) (stored []string, err error) {
	old, packed := false, ""
	for i := 0; ; i++ {
		part, err := surveyRarPart(v.Volume(i), i, &packed, most, n)
		if err != nil {
			return nil, err
		}
		stored = append(stored, part.raw...)
		old = old || part.old
		if !part.more {
			return stored, nil
		}
		next, err := nextPart(v.Base[i], old)
		if err != nil {
			return nil, n.Broken("", files.RuleMultiDisk, "the archive is one part of several, and "+err.Error(), nil)
		}
		err = v.Open(next)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, n.Broken("", files.RuleMultiDisk, fmt.Sprintf("the archive is one part of several, and the next, %s, is not there", next), nil)
		}
		if err != nil {
			return nil, err
		}
	}
}

type rarPart struct {
	old, more bool
	raw       []string
}

// rarWalk is the walk over one part.
type rarWalk struct {
	n       *notes.Notes
	most    int64 // members
	r       *io.SectionReader
	b       *bufio.Reader
	read    func(*bufio.Reader) (rarBlock, error)
	first   bool // of the archive's parts
	part    rarPart
	last    string // the member before
	members int
	modern  bool
}

func surveyRarPart(r *io.SectionReader, number int, packed *string, most int64, n *notes.Notes) (rarPart, error) {
	w := &rarWalk{n: n, most: most, r: r, b: bufio.NewReaderSize(r, 4<<10), first: number == 0}
	head, _ := w.b.Peek(len(Magic5))
	switch {
	case string(head) == Magic5:
		_, _ = w.b.Discard(len(Magic5)) // was peeked at
		w.read, w.modern = readRar5, true
	case bytes.HasPrefix(head, []byte(Magic4)):
		_, _ = w.b.Discard(len(Magic4))
		w.read = readRar4
	default:
		return w.part, n.Broken("", files.RuleDamaged, "no rar header", nil)
	}
	for {
		block, err := w.read(w.b)
		pos, _ := r.Seek(0, io.SeekCurrent) // cannot fail
		at := pos - int64(w.b.Buffered())
		if errors.Is(err, io.EOF) {
			return w.part, w.noEnd()
		}
		if err != nil {
			return w.part, rarDamage(w.last, err, n)
		}
		if block.data < 0 || block.data > r.Size()-at {
			return w.part, n.Broken(cmp.Or(block.name, w.last), files.RuleTruncated, "its data ends beyond the archive's", nil)
		}
		if block.kind == rarEnd {
			w.part.more = block.more
			return w.part, rarRest(r, at+block.data, n)
		}
		if err := w.take(block, packed); err != nil {
			return w.part, err
		}
		if _, err := r.Seek(at+block.data, io.SeekStart); err != nil {
			return w.part, err
		}
		w.b.Reset(r)
	}
}

// take looks at one block. packed is what the members so far were packed by.
func (w *rarWalk) take(block rarBlock, packed *string) error {
	switch block.kind {
	case rarEncrypted:
		return w.n.Broken("", files.RuleEncrypted, "the archive's list of members is encrypted (AES)", nil)
	case rarMain:
		w.part.old = block.old
		return nil
	case rarMember:
	default:
		return nil
	}
	if w.members++; w.members == 1 && w.first && block.continued {
		return w.n.Broken("", files.RuleMultiDisk, "the archive is one part of several, and not the first", nil)
	}
	if int64(w.members) > w.most {
		return w.n.Broken("", files.RuleFiles, fmt.Sprintf("the archive has more than %d members", w.most), nil)
	}
	if block.packed != "" {
		if *packed != "" && *packed != block.packed {
			return w.n.Broken(block.name, files.RuleMethod, fmt.Sprintf("compressed by %s, and members before it by %s: both in one archive are not supported", block.packed, *packed), nil)
		}
		*packed = block.packed
	}
	w.last, w.modern = block.name, w.modern || block.modern
	if block.raw {
		w.part.raw = append(w.part.raw, block.name)
	}
	if block.noSum {
		w.n.Warn(block.name, "has no check sum that could be compared (BLAKE2)")
	}
	return nil
}

// noEnd judges an archive that stops without an end block.
func (w *rarWalk) noEnd() error {
	if w.modern {
		return w.n.Broken(w.last, files.RuleTruncated, "the archive stops after this member, without an end block", nil)
	}
	w.n.Warn(w.last, "the archive stops after this member, without an end block: it may have been cut there")
	return nil
}

// rarRest looks at the bytes behind the end block. Parts of one size are filled up with
// zeros, and so was tape.
func rarRest(r *io.SectionReader, at int64, n *notes.Notes) error {
	if zeros, err := volume.OnlyZeros(io.NewSectionReader(r, at, r.Size()-at)); zeros || err != nil {
		return err
	}
	return n.Broken("", files.RuleTrailing, fmt.Sprintf("%d bytes follow the end of the archive", r.Size()-at), nil)
}

var errRarSum = errors.New("a header does not match its check sum")

func rarDamage(last string, err error, n *notes.Notes) error {
	switch {
	case errors.Is(err, errRarSum):
		return n.Broken(last, files.RuleChecksum, "the header after this member does not match its check sum", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n.Broken(last, files.RuleTruncated, "the archive ends within the header after this member", err)
	}
	return n.Broken(last, files.RuleDamaged, "the header after this member is damaged", err)
}
