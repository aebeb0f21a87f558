package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// fileSystem tries what the workspace needs of its file system.
func (d *Doctor) fileSystem() {
	var st unix.Statfs_t
	if err := unix.Statfs(d.ledger.Root, &st); err == nil && (st.Type == unix.NFS_SUPER_MAGIC || st.Type == unix.SMB_SUPER_MAGIC || st.Type == unix.CIFS_SUPER_MAGIC) {
		d.say("file system", Poor, "the workspace is on a network file system: locks and syncs are as good as its server's")
	}
	if d.ledger.ReadOnly {
		d.say("file system", Poor, "not tried, as the workspace is open for reading only")
		return
	}
	dir, err := os.MkdirTemp(d.ledger.Path(layout.StateDir), "doctor-")
	if err != nil {
		d.say("file system", Wrong, "%v", err)
		return
	}
	defer func() { _ = disk.RemoveTree(dir) }()
	lacks, weak := try(dir)
	for _, text := range weak {
		d.say("file system", Poor, "%s", text)
	}
	d.all("file system", Wrong, "links, renames, locks, long names and any bytes in names", lacks)
}

// try gives what does not work in a folder, and what works less well than it could.
func try(dir string) (lacks, weak []string) {
	in := func(name string) string { return filepath.Join(dir, name) }
	want := func(what string, err error) {
		if err != nil {
			lacks = append(lacks, fmt.Sprintf("%s: %v", what, err))
		}
	}
	want("a file, made durable", disk.WriteFile(in("a"), []byte("a"), 0o600))
	want("a hard link", os.Link(in("a"), in("b")))
	want("a rename that replaces nothing", unix.Renameat2(unix.AT_FDCWD, in("b"), unix.AT_FDCWD, in("c"), unix.RENAME_NOREPLACE))
	want("a name of 255 bytes", os.WriteFile(in(strings.Repeat("n", 255)), nil, 0o600))
	want("a name that is no UTF-8", os.WriteFile(in("caf\xe9"), nil, 0o600))
	want("a symbolic link", os.Symlink("a", in("l")))
	unlock, err := disk.LockDir(dir)
	if want("a lock", err); err == nil {
		want("its end", unlock())
	}
	if _, err := os.Lstat(in("A")); err == nil {
		lacks = append(lacks, "names that differ in case: it takes them for the same")
	} else if !errors.Is(err, os.ErrNotExist) {
		want("a name in another case", err)
	}
	if disk.WritersOf(in("a")) == disk.UnseenWriters {
		weak = append(weak, "it grants no leases: a drop waits for twice the quiet time, as nobody sees who still writes")
	}
	return lacks, weak
}
