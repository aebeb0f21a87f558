package bags

import (
	"errors"
	"io"
	"io/fs"
)

// refuseMode says why a member of this mode is not taken.
func refuseMode(m fs.FileMode, folder bool) (Rule, string) {
	switch {
	case m&fs.ModeSymlink != 0:
		return RuleSymlink, refusedLink(symbolicLinks, "")
	case m&(fs.ModeType&^fs.ModeDir) != 0:
		return RuleSpecial, "devices and FIFOs are not taken"
	case m.IsDir() && !folder:
		return RuleConflict, "a folder that holds data"
	}
	return "", ""
}

// remember tells an error of reading from one of writing.
type remember struct {
	r   io.Reader
	err error
}

func (r *remember) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
