package roots

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The rules are: a folder has as many paths as links and mounts give it. Links are followed; a mount, as one of mount --bind, shows a
// folder of a file system, which /proc/self/mountinfo names, so that two paths are compared as that file system has them; and
// folders on the way up are compared by device and inode, as two mounts of a server may be two file systems here. What an overlay
// shows of a folder, or a server under another device, is not known to be it.

// Located is a path, which need not be there yet.
type Located struct {
	abs, real string
	in        within
	mounts    mounts
}

// within is a path on a file system.
type within struct{ device, path string }

// Locate finds out where a full path leads.
func Locate(abs string) Located { return readMounts().located(abs) }

func (all mounts) located(abs string) Located {
	real := Resolve(abs)
	return Located{abs, real, all.locate(real), all}
}

// LiesIn reports whether the path is dir, or lies in it, whatever links and mounts name them.
func (p Located) LiesIn(dir string) bool {
	real := Resolve(dir)
	if Within(p.abs, dir) || Within(p.abs, real) || Within(p.real, real) || passes(p.real, real) {
		return true
	}
	of := p.mounts.locate(real)
	return of.device != "" && of.device == p.in.device && Within(p.in.path, of.path)
}

// mount is a line of /proc/self/mountinfo.
type mount struct {
	id                 uint64
	device, root, over string
}

type mounts []mount

// readMounts gives what is mounted; none where that cannot be read.
func readMounts() (all mounts) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// proc_pid_mountinfo(5): id parent major:minor root over …
		field := strings.Fields(lines.Text())
		if len(field) < 5 {
			continue
		}
		id, err := strconv.ParseUint(field[0], 10, 64)
		if err == nil {
			all = append(all, mount{id, field[2], unescaped.Replace(field[3]), unescaped.Replace(field[4])})
		}
	}
	return all
}

var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// locate gives a path whose links were followed as its file system has it; none where that is not known.
func (all mounts) locate(real string) within {
	id, known := mountOf(real)
	found := -1
	for i, m := range all {
		if known && m.id == id || !known && Within(real, m.over) && (found < 0 || len(m.over) >= len(all[found].over)) { // of two on one folder the later one is seen
			found = i
		}
	}
	if found < 0 {
		return within{}
	}
	rel, err := filepath.Rel(all[found].over, real)
	if err != nil || !filepath.IsLocal(rel) {
		return within{}
	}
	return within{all[found].device, filepath.Join(all[found].root, rel)}
}

// mountOf gives the mount that what is there of a path lies on; before Linux 5.8 it is not known.
func mountOf(path string) (id uint64, known bool) {
	for {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st)
		if err == nil {
			return st.Mnt_id, st.Mask&unix.STATX_MNT_ID != 0
		}
		if path == filepath.Dir(path) {
			return 0, false
		}
		path = filepath.Dir(path)
	}
}
