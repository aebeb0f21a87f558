package upload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/sys/unix"
)

const (
	partsDir = "parts"
	dropDir  = "drop"
	infoEnd  = ".info"

	lasts     = 24 * time.Hour // a set in which nothing moves
	mostFiles = 100_000        // of a set
)

// Uploads are the sets of all inboxes.
type Uploads struct {
	d  *desk.Desk
	mu sync.Mutex // guards the folders of sets, but not the bytes of parts, and whole
	// whole counts the files of a set that are whole, by its folder, so that not all of them
	// are read whenever one ends.
	whole map[string]int
}

// New gives the uploads of a workspace.
func New(d *desk.Desk) *Uploads { return &Uploads{d: d, whole: map[string]int{}} }

// set is what is sent for one drop.
type set struct{ inbox, dir string }

func (u *Uploads) set(collection layout.Name, name string) set {
	inbox := filepath.Join(u.d.Root, layout.InboxDir, string(collection))
	return set{inbox, filepath.Join(inbox, layout.UploadPrefix+name)}
}

// begin makes the folder of a set, if it is not there.
func (s set) begin() error {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, partsDir), filepath.Join(s.dir, dropDir)} {
		if err := os.Mkdir(dir, 0o770); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// draw gives the name of a new set.
func (u *Uploads) draw() (string, error) {
	random := make([]byte, 8)
	if _, err := u.d.Random.Read(random); err != nil {
		return "", err
	}
	return hex.EncodeToString(random), nil
}

// room refuses an inbox that is not there, and bytes that would leave less free than the settings want.
func (u *Uploads) room(s set, bytes int64) error {
	if _, err := os.Stat(s.inbox); err != nil {
		return fault.New(fault.NotFound, fmt.Sprintf("there is no inbox %q", filepath.Base(s.inbox)))
	}
	free, err := disk.Free(s.inbox)
	if err != nil {
		return err
	}
	if least := u.d.Settings.Current().Settings.Free(); free < least || uint64(max(0, bytes)) > free-least {
		return fault.New(fault.Busy, fmt.Sprintf("there is no room for %d bytes in the inbox", bytes))
	}
	return nil
}

// checkName refuses what is no name of a file that is seen.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return fault.New(fault.Invalid, fmt.Sprintf("%q cannot be the name of a drop", name))
	}
	return nil
}

// checkDrop refuses what is no name of a drop that a collection takes in.
func (u *Uploads) checkDrop(collection layout.Name, name string) error {
	err := checkName(name)
	if err == nil && u.d.Settings.Current().Settings.Drops(collection).Settling().Unfinished(name) {
		err = fault.New(fault.Invalid, fmt.Sprintf("the name %q marks a drop as unfinished: the inbox would never take it in", name))
	}
	return err
}

// partName is the name of a file's part: a file that is announced again is the same part.
func partName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// checkPath refuses what is no path of a file in a drop.
func checkPath(name string) error {
	_, err := layout.ParseRelPath(name)
	if err == nil && (len(name) > 4096 || strings.HasSuffix(name, "/")) {
		err = fmt.Errorf("path %q: is not that of a file", name)
	}
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	return nil
}

// free refuses a name that lies in the inbox.
func (s set) free(name string) error {
	if _, err := os.Lstat(filepath.Join(s.inbox, name)); err == nil {
		return fault.New(fault.Refused, fmt.Sprintf("%s/%s lies in the inbox already", filepath.Base(s.inbox), name))
	}
	return nil
}

// publish renames the drop into the inbox under a name, or, when one is given, its one file.
func (s set) publish(name, alone string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	from, to := filepath.Join(s.dir, dropDir), filepath.Join(s.inbox, name)
	if err := disk.SyncTree(from); err != nil {
		return "", err
	}
	from = filepath.Join(from, alone)
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system without it
		if err = s.free(name); err == nil {
			err = os.Rename(from, to)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		err = s.free(name)
	}
	if err != nil {
		return "", err
	}
	return to, disk.SyncDir(s.inbox)
}

// names lists what was announced for a set.
func (s set) names() (names []string) {
	infos, _ := filepath.Glob(filepath.Join(globbed(s.dir), partsDir, "*"+infoEnd)) // the pattern is one
	for _, at := range infos {
		names = append(names, strings.TrimSuffix(filepath.Base(at), infoEnd))
	}
	return names
}

// globbed is a path in which nothing is a pattern.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// part reads a part, with how much of it is there.
func (s set) part(id string) (info handler.FileInfo, err error) {
	data, err := os.ReadFile(filepath.Join(s.dir, partsDir, id+infoEnd))
	if errors.Is(err, fs.ErrNotExist) {
		return info, handler.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err != nil {
		return info, err
	}
	stat, err := os.Stat(filepath.Join(s.dir, partsDir, id))
	if errors.Is(err, fs.ErrNotExist) { // it was moved to the drop when it was whole
		info.Offset = info.Size
		return info, nil
	}
	if err == nil {
		info.Offset = stat.Size()
	}
	return info, err
}

// finish publishes a set, of which so many files are whole, if those are all; "": they are not.
func (s set) finish() (at string, whole int, err error) {
	var parts []handler.FileInfo
	names := s.names()
	for _, name := range names {
		p, err := s.part(name)
		if err != nil {
			return "", 0, err
		}
		if p.Offset == p.Size {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 || len(parts) < len(names) || fmt.Sprint(len(parts)) != parts[0].MetaData["files"] {
		return "", len(parts), nil
	}
	here := false
	for _, p := range parts {
		to := filepath.Join(s.dir, dropDir, filepath.FromSlash(p.MetaData["path"]))
		if err := os.MkdirAll(filepath.Dir(to), 0o770); err != nil {
			return "", 0, err
		}
		err := os.Rename(filepath.Join(s.dir, partsDir, p.ID), to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", 0, err
		}
		_, there := os.Lstat(to)
		here = here || there == nil
	}
	if !here { // it was published before
		return "", len(parts), nil
	}
	name, alone := parts[0].MetaData["name"], ""
	if len(parts) == 1 && parts[0].MetaData["path"] == name {
		alone = name
	}
	if at, err = s.publish(name, alone); fault.Is(err, fault.Refused) { // another came first; nothing is lost
		at, err = s.publish(name+"-"+strings.TrimPrefix(filepath.Base(s.dir), layout.UploadPrefix)[:8], alone)
	}
	return at, len(parts), err
}

// Sweep publishes what became whole before a crash, and removes the sets in which nothing
// moved for a day.
func (u *Uploads) Sweep() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	dirs, err := filepath.Glob(filepath.Join(globbed(u.d.Root), layout.InboxDir, "*", layout.UploadPrefix+"*"))
	var errs []error
	for _, dir := range dirs {
		s := set{filepath.Dir(dir), dir}
		delete(u.whole, dir)
		if at, _, err := s.finish(); err != nil {
			errs = append(errs, fmt.Errorf("upload %s: %w", path.Base(dir), err))
		} else if at != "" {
			u.d.Log.Info("upload", "drop", at)
		}
		if u.d.Now().Sub(s.moved()) > lasts {
			u.d.Log.Info("an upload was given up; nothing came for a day", "folder", dir)
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(append(errs, err)...)
}

// moved is when something was written into a set last.
func (s set) moved() (last time.Time) {
	_ = filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error { // what vanishes meanwhile is none
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}
