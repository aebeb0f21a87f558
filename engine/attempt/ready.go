package attempt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"bagpipe/layout"
	"bagpipe/steps"
)

// ready is the folder that a program renames its children into, and the program, which is
// stopped while one lies there.
type ready struct {
	dir   string
	watch int          // of inotify; -1: none was left, and the folder is looked at now and then
	group atomic.Int64 // the program's process group; 0: it has not started
	held  bool
	built map[string]bool // names that were made in the folder, not renamed into it
}

// openReady makes the folder, in an empty scratch folder.
func openReady(scratch string) (*ready, error) {
	r := &ready{dir: filepath.Join(scratch, layout.ReadyDir), watch: -1, built: map[string]bool{}}
	if err := os.Mkdir(r.dir, 0o777); err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return r, nil // the account has too many of them
	}
	if _, err := unix.InotifyAddWatch(fd, r.dir, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		return r, unix.Close(fd)
	}
	r.watch = fd
	return r, nil
}

// first gives the name of the first child that lies there, in the order of names, or "".
func (r *ready) first() (string, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return "", err
	}
	r.look() // after the list: the event of each name in it has come
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if r.built[name] {
			return "", steps.SystemFailure("%s/%s was made there; make a child under a name that begins with a dot, and rename it when it is whole", layout.ReadyDir, layout.EncodePath(name))
		}
		return name, nil
	}
	return "", nil
}

// look reads what happened in the folder.
func (r *ready) look() {
	events := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for r.watch >= 0 {
		n, err := unix.Read(r.watch, events)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return
		}
		for rest := events[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			mask, size := binary.NativeEndian.Uint32(rest[4:]), int(binary.NativeEndian.Uint32(rest[12:]))
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], []byte{0})
			rest = rest[unix.SizeofInotifyEvent+size:]
			if mask&unix.IN_CREATE != 0 && !bytes.HasPrefix(name, []byte(".")) {
				r.built[string(name)] = true
			} else {
				delete(r.built, string(name))
			}
		}
	}
}

// hold stops the program, or lets it go on.
func (r *ready) hold(on bool) {
	group := r.group.Load()
	if on == r.held || group == 0 {
		return
	}
	signal := syscall.SIGCONT
	if on {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(-int(group), signal) // gone already: nothing to hold
	r.held = on
}

// forget removes what was said of a child that is taken.
func (r *ready) forget(name string) error {
	if err := os.Remove(filepath.Join(r.dir, steps.SaidOf(name))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left fails a program that ended before it renamed what it made.
func (r *ready) left() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	return steps.SystemFailure("%s/%s is no child: it was not renamed, or speaks of none", layout.ReadyDir, layout.EncodePath(entries[0].Name()))
}

// close lets the program go on, and gives the watch back.
func (r *ready) close() error {
	r.hold(false)
	if r.watch < 0 {
		return nil
	}
	if err := unix.Close(r.watch); err != nil {
		return fmt.Errorf("end the watch of %s: %w", layout.ReadyDir, err)
	}
	return nil
}
