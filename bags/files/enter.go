package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// entered is the folder of a root that was entered last, kept open. The kernel finds a
// folder below the open top by one openat2 that no link leads out of, where os.Root takes
// three calls for each part of its path. Used by one goroutine; the zero value has entered
// none.
type entered struct {
	top  *os.File // the root itself
	dir  *os.File // set where os.Root found the folder
	fd   int      // the folder; the top's while path is ""
	path string
}

// enter gives the descriptor of a folder of root, "" or "." being root itself. It is good
// until the next call.
func (e *entered) enter(root *os.Root, folder string) (int, error) {
	if folder == "." {
		folder = ""
	}
	if e.top != nil && e.path == folder {
		return e.fd, nil
	}
	if e.top == nil {
		top, err := openIn(root, ".")
		if err != nil {
			return -1, err
		}
		e.top, e.fd, e.path = top, int(top.Fd()), ""
	}
	e.forget()
	if folder == "" {
		return e.fd, nil
	}
	fd, err := retry(func() (int, error) { return unix.Openat2(int(e.top.Fd()), folder, &beneath) })
	if err != nil { // os.Root says what it is, also where there is no openat2
		if e.dir, err = openIn(root, folder); err != nil {
			return -1, err
		}
		fd = int(e.dir.Fd())
	}
	e.fd, e.path = fd, folder
	return fd, nil
}

var beneath = unix.OpenHow{
	Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
}

func openIn(root *os.Root, folder string) (*os.File, error) {
	return root.OpenFile(folder, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// forget leaves the folder for the top. All is open for reading only: nothing can be lost.
func (e *entered) forget() {
	switch {
	case e.dir != nil:
		e.dir.Close()
		e.dir = nil
	case e.path != "":
		unix.Close(e.fd)
	}
	e.fd, e.path = int(e.top.Fd()), ""
}

// leave lets go of all that is open.
func (e *entered) leave() {
	if e.top != nil {
		e.forget()
		e.top.Close()
		e.top = nil
	}
}

// mkdir makes a folder below root.
func (e *entered) mkdir(root *os.Root, name string) error {
	folder := parent(name)
	dir, err := e.enter(root, folder)
	if err != nil {
		return err
	}
	base := name
	if folder != "" {
		base = name[len(folder)+1:]
	}
	if _, err := retry(func() (int, error) { return 0, unix.Mkdirat(dir, base, uint32(FolderPerm)) }); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

// finish gives a folder below root its time and, with frozen, takes away the permission to
// write in it.
func (e *entered) finish(root *os.Root, f *Entry, frozen bool) error {
	dir, err := e.enter(root, f.Path)
	if err != nil {
		return err
	}
	if frozen {
		if err := freeze(dir, f.Path); err != nil {
			return err
		}
	}
	t, err := unix.TimeToTimespec(f.Time)
	if err != nil || unix.UtimesNanoAt(dir, "", []unix.Timespec{t, t}, unix.AT_EMPTY_PATH) != nil {
		return root.Chtimes(f.Path, f.Time, f.Time) // AT_EMPTY_PATH: Linux 5.8
	}
	return nil
}

// freeze takes away the permission to write in an open folder.
func freeze(dir int, name string) error {
	var st unix.Stat_t
	err := unix.Fstat(dir, &st)
	if err == nil && st.Mode&writable != 0 {
		err = unix.Fchmod(dir, st.Mode&0o7777&^writable)
	}
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	return nil
}
