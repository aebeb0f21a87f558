package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/engine/fault"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// The rules are: an object of a catalog stays where it is, and nothing is written there. Its
// item's record holds the stamp that it had when it was digested. A step begins only while the
// object has that stamp, and its end counts only if the object has it still. A packed object is
// opened beside the step's scratch folder, and that is removed with the attempt. No link below the root is followed; a robot
// goes by the path, and would follow one that a folder above the object is swapped for while it runs: where that is so at its
// end, the end does not count, and where it is no more, what was inventoried is told by its digest alone.

// Roots gives the root of a catalog, and whether size and modification time alone are compared
// there; "" where there is no such catalog.
type Roots func(catalog layout.Name) (root string, trusting bool)

// PlaceOf is where the object of an item stays that was not taken in; "" where it was.
func (fo *Folders) PlaceOf(m layout.Manifest) (path string, trusting bool, err error) {
	at, trusting, err := fo.rootOf(m)
	if err != nil || at == (below{}) {
		return "", false, err
	}
	return filepath.Join(at.root, at.rel), trusting, nil
}

// below is a path below a catalog's root.
type below struct{ root, rel string }

func (fo *Folders) rootOf(m layout.Manifest) (at below, trusting bool, err error) {
	p := m.Source.Place
	if p == nil {
		return at, false, nil
	}
	rel, err := layout.DecodePath(p.Path)
	if err == nil {
		_, err = layout.ParseRelPath(rel)
	}
	if err != nil {
		return at, false, fmt.Errorf("the place in %s: %w", layout.ManifestJSON, err)
	}
	root, trusting := "", false
	if fo.Roots != nil {
		root, trusting = fo.Roots(p.Catalog)
	}
	if root == "" {
		return at, false, fault.New(fault.NotFound, fmt.Sprintf("the object stays in catalog %s%s", p.Catalog, noCatalog))
	}
	return below{root, rel}, trusting, nil
}

// Found is PlaceOf of an object that is there; fs.ErrNotExist: it is not, or a link below the root is on the way to it.
func (fo *Folders) Found(m layout.Manifest) (path string, err error) {
	at, _, err := fo.rootOf(m)
	if err != nil || at == (below{}) {
		return "", err
	}
	held, err := disk.Hold(at.root, at.rel)
	if err != nil {
		return held.Real, err
	}
	defer held.Release()
	_, err = os.Lstat(held.Path())
	return held.Real, held.Named(err)
}

// ObjectOf is where an item's object stands: in its place, or in the item's folder.
func (fo *Folders) ObjectOf(m layout.Manifest) (string, error) {
	place, _, err := fo.PlaceOf(m)
	if place == "" && err == nil {
		place = ContentOf(fo.path(layout.ItemDir(m.Item)))
	}
	return place, err
}

// NotThere is what PlaceChanged says of an object of which nothing is in its place.
const NotThere = "is not there"

// PlaceChanged says how an object in place is not what its item's record says; "" where it is,
// and where the item was taken in.
func (fo *Folders) PlaceChanged(ctx context.Context, m layout.Manifest) (why string, err error) {
	at, trusting, err := fo.rootOf(m)
	if err != nil || at == (below{}) {
		return "", err
	}
	with, err := m.Source.Place.Beside()
	if err != nil {
		return "", err
	}
	stamp := ""
	held, err := disk.Hold(at.root, at.rel)
	if err == nil {
		stamp, err = StampPlace(ctx, held.Path(), with, trusting)
		held.Release()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return NotThere, nil
	}
	if errors.Is(err, errMounted) {
		return "has a folder in it on which another file system is mounted", nil
	}
	if err == nil && stamp != m.Source.Place.Stamp {
		why = "has changed since it was catalogued"
	}
	return why, held.Named(err)
}

// The ways in which the failure of a step begins or goes on whose object is gone from its place.
const (
	goneFrom  = " is gone from catalog "
	noCatalog = ", which is not in " + layout.CatalogsDir + "/"
)

// PlaceGone says that an object is not in its place any more, though the root of its catalog is not away;
// "" where that is not so.
func (fo *Folders) PlaceGone(m layout.Manifest) string {
	path, err := fo.Found(m)
	if fault.Is(err, fault.NotFound) {
		return err.Error()
	}
	if path == "" || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if fo.Away(m.Source.Place.Catalog) != "" {
		return ""
	}
	return m.Source.Place.Path + goneFrom + string(m.Source.Place.Catalog)
}

// Barred says what of an object in place this account may not read; "" where it may read all that is there.
func (fo *Folders) Barred(m layout.Manifest) (why string) {
	path, _, err := fo.PlaceOf(m)
	if err != nil || path == "" {
		return ""
	}
	p := m.Source.Place
	barred := func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = unix.Faccessat(unix.AT_FDCWD, at, unix.R_OK, unix.AT_EACCESS)
		}
		if errors.Is(err, fs.ErrPermission) {
			rel := strings.TrimPrefix(at, strings.TrimSuffix(path, "/"+filepath.Base(path))+"/")
			why = fmt.Sprintf("%s in catalog %s may not be read by this account (%s)", filepath.Join(filepath.Dir(p.Path), layout.EncodePath(rel)), p.Catalog, disk.AccountName(os.Geteuid()))
			return fs.SkipAll
		}
		return nil // it may have gone
	}
	with, _ := p.Beside() // what does not name a file is told of by the step
	for _, name := range append([]string{filepath.Base(path)}, with...) {
		if _ = filepath.WalkDir(filepath.Join(filepath.Dir(path), name), barred); why != "" {
			break
		}
	}
	return why
}

// SaysGone reports whether a step's message is that of PlaceGone.
func SaysGone(message string) bool {
	return strings.Contains(message, goneFrom) || strings.Contains(message, noCatalog)
}

// errMounted is what StampPlace says of a folder on which another file system is mounted: that is no part of the object.
var errMounted = errors.New("another file system is mounted on a folder in it")

// isMount reports whether something is mounted on a folder; before Linux 5.8 none is known to be.
func isMount(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// StampPlace is the state of an object: name, type, size, inode, modification and change time
// of all in it; of its top, which may be moved, neither name nor change time. With trusting it
// is names, types, sizes and modification times alone. With are the files beside it that it is made of, too.
func StampPlace(ctx context.Context, object string, with []string, trusting bool) (string, error) {
	if len(with) > 0 {
		return stampFiles(ctx, object, with, trusting)
	}
	var st syscall.Stat_t
	err := syscall.Lstat(object, &st)
	for err == syscall.EINTR {
		err = syscall.Lstat(object, &st)
	}
	if err != nil {
		return "", &fs.PathError{Op: "lstat", Path: object, Err: err}
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFREG {
		return StampFile(st.Size, st.Ino, time.Unix(st.Mtim.Unix()).UnixNano(), trusting), nil
	}
	h := sha256.New()
	err = filepath.WalkDir(object, func(at string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		info, err := d.Info() // the walk has looked at the top already
		if err != nil {
			return err
		}
		st := *info.Sys().(*syscall.Stat_t)
		if info.IsDir() {
			if st.Size = 0; isMount(at) {
				return errMounted
			}
		}
		changed := time.Unix(st.Ctim.Unix()).UnixNano()
		if trusting {
			changed, st.Ino = 0, 0
		}
		rel := ""
		if at != object {
			rel = layout.EncodePath(at[len(object)+1:])
		} else {
			changed = 0
		}
		h.Write(appendStamp(nil, rel, st.Mode&syscall.S_IFMT, st.Size, st.Ino, time.Unix(st.Mtim.Unix()).UnixNano(), changed))
		return nil
	})
	return named(h.Sum(nil)), err
}

// StampFile is StampPlace of a regular file of so many bytes, which was modified so many nanoseconds
// after 1970.
func StampFile(size int64, inode uint64, modified int64, trusting bool) string {
	if trusting {
		inode = 0
	}
	sum := sha256.Sum256(appendStamp(make([]byte, 0, 128), "", syscall.S_IFREG, size, inode, modified, 0))
	return named(sum[:])
}

func appendStamp(b []byte, rel string, kind uint32, size int64, inode uint64, modified, changed int64) []byte {
	b = append(append(b, rel...), '\t')
	b = append(strconv.AppendUint(b, uint64(kind), 8), '\t')
	b = append(strconv.AppendInt(b, size, 10), '\t')
	b = append(strconv.AppendUint(b, inode, 10), '\t')
	b = append(strconv.AppendInt(b, modified, 10), '\t')
	return append(strconv.AppendInt(b, changed, 10), '\n')
}

func named(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// Opened is what a step sees of an object in place.
type Opened struct {
	Place   string   // the object itself
	Source  string   // a folder with a link to it, under its name
	Content string   // the object, or what was packed in it; of files side by side a folder with a link to each
	Beside  []string // the files beside Place that are the object together with it; none where Content is not the object
	dir     string
}

// OpenPlace lets a step see an object in place: packed, it is unpacked beside scratch.
func (fo *Folders) OpenPlace(ctx context.Context, m layout.Manifest, scratch string, limits archive.Limits) (o Opened, err error) {
	at, _, err := fo.rootOf(m)
	if at != (below{}) {
		o.Place = filepath.Join(at.root, at.rel)
	}
	if err == nil && o.Place != "" && fo.InPlace(m) {
		o.Beside, err = m.Source.Place.Beside()
	}
	if err != nil || o.Place == "" || scratch == "" {
		o.Source, o.Content = "", o.Place
		return o, err
	}
	o.dir, o.Content = scratch+".place", o.Place
	made := filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.ContentDir)
	_, err = os.Lstat(made)
	isMade := err == nil // by a step
	if isMade {
		o.Content = made
	}
	o.Source = filepath.Join(o.dir, layout.SourceDir)
	if err := os.MkdirAll(o.Source, 0o700); err != nil {
		return o, err
	}
	if with, err := m.Source.Place.Beside(); err != nil || len(with) > 0 {
		return o, errors.Join(err, o.linkTo(m.Source.Name, with))
	}
	if err := os.Symlink(o.Place, filepath.Join(o.Source, filepath.Base(o.Place))); err != nil {
		return o, err
	}
	held, err := disk.Hold(at.root, at.rel)
	if err != nil {
		return o, err
	}
	defer held.Release()
	if info, err := os.Lstat(held.Path()); isMade || err != nil || !info.Mode().IsRegular() {
		return o, held.Named(err)
	}
	if format, err := archive.Sniff(held.Path()); err != nil || format == archive.None {
		return o, held.Named(err)
	}
	o.Content = filepath.Join(o.dir, layout.ContentDir)
	if err := os.Mkdir(o.Content, 0o700); err != nil {
		return o, err
	}
	_, err = archive.Extract(ctx, held.Path(), o.Content, archive.ExtractOptions{Limits: limits})
	return o, held.Named(err)
}

// NotCatalogued says that the object in place, which has the inventory v, is not the one that was catalogued, though its stamp is
// that one's; "" where it is. Where v is of what was packed in the object, or a step made of it, its size alone tells.
func (o Opened) NotCatalogued(m layout.Manifest, v *layout.Inventory) (why string, err error) {
	if o.Place == "" {
		return "", nil
	}
	info, err := os.Lstat(o.Place)
	if err != nil {
		return "", err
	}
	const other = "is not the object that was catalogued: "
	single := info.Mode().IsRegular() && len(m.Source.Place.With) == 0
	if single && info.Size() != m.Source.Bytes {
		return fmt.Sprintf(other+"it has %d bytes, and had %d", info.Size(), m.Source.Bytes), nil
	}
	if o.Content != o.Place && len(o.Beside) == 0 {
		return "", nil
	}
	sum, err := inbox.SumOf(v)
	if err != nil {
		return "", err
	}
	for _, f := range v.Files {
		if single { // the one
			sum.Digest = "sha256:" + f.SHA256
		}
	}
	if sum.Digest == m.Source.Digest {
		return "", nil
	}
	return fmt.Sprintf(other+"its digest is %s, and was %s", sum.Digest, m.Source.Digest), nil
}

// Close removes what was opened.
func (o Opened) Close() error {
	if o.dir == "" {
		return nil
	}
	return os.RemoveAll(o.dir)
}
