package worktree

import (
	"errors"
	"fmt"
	"strings"
)

var (
	errInTheWay = errors.New("a file is in the way of a folder")
	errIsFolder = errors.New("is a folder")
	errBadPath  = errors.New("is not a path the repository can hold")
	errTooLarge = errors.New("the change is larger than a pack may be")
)

// maxChange bounds the bytes of one Change: offsets in our packs have 31 bits.
const maxChange = 1 << 30

// checkSize refuses a change that no pack could hold.
func checkSize(files map[string][]byte) error {
	size := 0
	for p, data := range files {
		if size += len(data); size > maxChange {
			return &pathError{path: p, cause: errTooLarge}
		}
	}
	return nil
}

// pathError refuses a path of a Change.
type pathError struct {
	path  string
	cause error
	at    string // what stands in the way in the tree; "": nothing does
}

func (e *pathError) Error() string { return fmt.Sprintf("write %s: %v", e.path, e.cause) }
func (e *pathError) Unwrap() error { return e.cause }

// IsPath reports whether an error refuses a path of a Change, and not the writing.
func IsPath(err error) bool {
	var p *pathError
	return errors.As(err, &p)
}

// InTheWay gives the path that a Change had and what stands there in the tree: a file in the
// place of a folder above it, or a folder in its own place. "": the error is another.
func InTheWay(err error) (path, at string) {
	if p, is := errors.AsType[*pathError](err); is {
		return p.path, p.at
	}
	return "", ""
}

// check refuses a path before anything is changed: what git fsck --strict would
// complain of, and a file where a folder is or the other way round.
func (w *Tree) check(path string, files map[string][]byte) error {
	if !validPath(path) {
		return &pathError{path: path, cause: errBadPath}
	}
	for i := range len(path) {
		if path[i] == '/' {
			if _, clash := files[path[:i]]; clash {
				return &pathError{path: path, cause: errInTheWay}
			}
		}
	}
	e, found, err := w.find(path)
	if err != nil {
		return err
	}
	if found && e.Mode.IsDir() {
		return &pathError{path: path, cause: errIsFolder, at: path}
	}
	return nil
}

func validPath(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if !IsName(name) {
			return false
		}
	}
	return true
}

// IsName refuses what Git refuses in a tree: empty names, dots, and every
// spelling of .git that some file system takes for it.
func IsName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 4096 || strings.ContainsAny(name, "\x00\\") {
		return false
	}
	if c := name[0]; c != '.' && c != 'g' && c != 'G' && c < 0x80 {
		return true
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1 // what HFS+ ignores
		}
		return r
	}, strings.ToLower(name))
	plain, _, _ = strings.Cut(plain, ":")
	plain = strings.TrimRight(plain, " .")
	return plain != ".git" && plain != "git~1"
}
