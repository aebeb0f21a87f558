package folder

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"bagpipe/layout"
)

// The rules are: files that lie side by side and are one object are stamped, and linked to, one by one; what else lies
// in their folder is not looked at. The main file's absence is the object's. The absence of another file is a change.

// stampFiles is StampPlace of an object that is a file and others beside it.
func stampFiles(ctx context.Context, main string, with []string, trusting bool) (string, error) {
	h := sha256.New()
	for i, name := range append([]string{filepath.Base(main)}, with...) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		info, err := os.Lstat(filepath.Join(filepath.Dir(main), name))
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			h.Write([]byte(layout.EncodePath(name) + "\tgone\n"))
			continue
		}
		if err != nil {
			return "", err
		}
		st := *info.Sys().(*syscall.Stat_t)
		changed := time.Unix(st.Ctim.Unix()).UnixNano()
		if trusting {
			changed, st.Ino = 0, 0
		}
		h.Write(appendStamp(nil, layout.EncodePath(name), st.Mode&syscall.S_IFMT, st.Size, st.Ino, time.Unix(st.Mtim.Unix()).UnixNano(), changed))
	}
	return named(h.Sum(nil)), nil
}

// linkTo makes a folder below Source, called as the object is, with a link to each of the files that the object is. It is the
// content, unless a step made one.
func (o *Opened) linkTo(coded string, with []string) error {
	name, err := layout.DecodePath(coded)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Source, filepath.Base(filepath.FromSlash(name)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, name := range append([]string{filepath.Base(o.Place)}, with...) {
		if err := os.Symlink(filepath.Join(filepath.Dir(o.Place), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if o.Content == o.Place {
		o.Content = dir
	}
	return nil
}
