package frames

import (
	"errors"
	"io"
	"io/fs"

	"bagpipe/bags/files"
)

// RefuseMode gives the rule that a member of this mode breaks, if any.
func RefuseMode(m fs.FileMode, folder bool) (files.Rule, string) {
	switch {
	case m&fs.ModeSymlink != 0:
		return files.RuleSymlink, files.RefusedLink(files.SymbolicLinks, "")
	case m&(fs.ModeType&^fs.ModeDir) != 0:
		return files.RuleSpecial, "devices and FIFOs are not taken"
	case m.IsDir() && !folder:
		return files.RuleConflict, "a folder that holds data"
	}
	return "", ""
}

// Remember keeps the error of its reader, so that io.Copy's error of reading is told
// from one of writing.
type Remember struct {
	R   io.Reader
	Err error
}

// Read keeps any error but io.EOF.
func (r *Remember) Read(p []byte) (int, error) {
	n, err := r.R.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.Err = err
	}
	return n, err
}
