package bags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// How a folder is made a bag where it stands, and how a bag's tag files are
// replaced. The rules are:
//
//   - everything new is written into the folder .bagpipe-bag inside, and synced;
//     until then nothing else in the folder has changed;
//   - plan.json, written last and durably, is the decision. Without it, what a
//     crash left is taken away again: undone. With it, the plan is carried out to
//     its end, again from its beginning where that was interrupted: every move in
//     it is done once only, and one that was done is passed over: completed;
//   - every path in a plan is looked up through os.Root and must be a plain path:
//     a folder received from others may hold a plan that they wrote;
//   - a lock on the folder keeps two from working on it at once. It ends with its
//     process.

// WorkDir is the folder, inside a bag, of a change that is under way.
const WorkDir = ".bagpipe-bag"

const (
	planFile = WorkDir + "/plan.json"
	newDir   = WorkDir + "/new"
	movedDir = WorkDir + "/data"
)

// Outcome says what became of a change that was interrupted.
type Outcome string

// The outcomes; none where nothing had been interrupted.
const (
	Completed Outcome = "completed"
	Undone    Outcome = "undone"
)

// ErrBusy says that another process changes the bag.
var ErrBusy = errors.New("another process is changing this bag")

const planSchema = 1

// mostPlan bounds a plan: a million names in one folder.
const mostPlan = 64 << 20

// plan lists the changes to make once everything new is written. Paths are
// percent-encoded.
type plan struct {
	Schema int      `json:"schema"`
	Moves  bool     `json:"moves"`  // the folder becomes a bag
	Move   []string `json:"move"`   // entries of the folder that become payload
	Put    []string `json:"put"`    // tag files, from WorkDir/new
	Remove []string `json:"remove"` // tag files
}

// rewrite is a change of one folder under way. It is used by one goroutine.
type rewrite struct {
	dir       string
	root      *os.Root
	lock      *os.File
	begun     bool
	committed bool
	finished  bool
	cleared   bool // an empty WorkDir was there: of a call that was just beginning, or had ended
	sync      bool
	step      func() // tests end the process here; nil otherwise
}

// openRewrite locks dir, finishes what was interrupted there, and begins.
func openRewrite(dir string, sync bool, step func()) (_ *rewrite, _ Outcome, err error) {
	r := &rewrite{dir: dir, sync: sync, step: step}
	if r.root, err = os.OpenRoot(dir); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.unlock())
		}
	}()
	if r.lock, err = os.Open(dir); err != nil {
		return nil, "", err
	}
	if err := unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, "", err
	}
	was, err := r.recover()
	return r, was, err
}

// begin makes the place for what is new.
func (r *rewrite) begin() error {
	for _, d := range []string{WorkDir, newDir} {
		r.tick()
		if err := r.root.Mkdir(d, files.FolderPerm); err != nil {
			return err
		}
		r.begun = true
	}
	return nil
}

func (r *rewrite) tick() {
	if r.step != nil {
		r.step()
	}
}

// place gives the folder of new tag files before the commit.
func (r *rewrite) place() string { return filepath.Join(r.dir, newDir) }

func (r *rewrite) put(p string, data []byte) error {
	r.tick()
	to := path.Join(newDir, p)
	if err := r.root.MkdirAll(path.Dir(to), files.FolderPerm); err != nil {
		return err
	}
	return r.root.WriteFile(to, data, files.FilePerm)
}

// commit syncs what is new, writes the plan, and carries it out. An error before
// the payload stands in data/ takes everything back.
func (r *rewrite) commit(p plan) error {
	p.Schema = planSchema
	slices.Sort(p.Put)
	if p.Moves {
		r.tick()
		if err := r.root.Mkdir(movedDir, files.FolderPerm); err != nil {
			return err
		}
	}
	data, err := layout.EncodeJSON(p)
	if err != nil {
		return err
	}
	if len(data) > mostPlan {
		return fmt.Errorf("the names at the top of the folder take more than %d bytes; put them into folders", mostPlan)
	}
	r.tick()
	if r.sync {
		if err := disk.SyncFS(r.dir); err != nil {
			return err
		}
	}
	r.tick()
	if err := r.writePlan(data); err != nil {
		// The plan goes first: with it, and without all that is new, half would be done.
		gone := r.root.Remove(planFile)
		if errors.Is(gone, fs.ErrNotExist) {
			gone = nil
		}
		r.committed = gone != nil
		return errors.Join(err, gone)
	}
	r.committed = true
	if err := r.apply(&p); err != nil {
		return errors.Join(err, r.takeBack(&p))
	}
	return r.finish()
}

// writePlan is the point of no return. A crash just after it is completed by the
// next call.
func (r *rewrite) writePlan(data []byte) error {
	tmp := planFile + ".tmp"
	if err := r.root.WriteFile(tmp, data, files.FilePerm); err != nil {
		return err
	}
	if r.sync {
		if err := r.syncPath(tmp); err != nil {
			return err
		}
	}
	if err := r.root.Rename(tmp, planFile); err != nil || !r.sync {
		return err
	}
	return r.syncPath(WorkDir)
}

// syncPath makes a file's bytes, or a folder's names, durable.
func (r *rewrite) syncPath(p string) error {
	f, err := r.root.Open(p)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (r *rewrite) apply(p *plan) error {
	if p.Moves {
		if err := r.move(p); err != nil {
			return err
		}
	}
	for _, t := range p.Put {
		t, err := layout.DecodePath(t)
		if err != nil {
			return err
		}
		if err := r.rename(path.Join(newDir, t), t); err != nil {
			return err
		}
	}
	for _, t := range p.Remove {
		t, err := layout.DecodePath(t)
		if err != nil {
			return err
		}
		r.tick()
		if err := r.root.Remove(t); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// move makes the folder's entries payload. As long as WorkDir/data is there, what
// stands beside it under a name of the plan has not been moved yet, even where
// that name is data.
func (r *rewrite) move(p *plan) error {
	if there, err := r.exists(movedDir); err != nil || !there {
		return err
	}
	for _, name := range p.Move {
		name, err := layout.DecodePath(name)
		if err != nil {
			return err
		}
		if err := r.rename(name, path.Join(movedDir, name)); err != nil {
			return err
		}
	}
	return r.rename(movedDir, tagfile.PayloadDir)
}

// rename moves from to to; where from is gone, that was done already.
func (r *rewrite) rename(from, to string) error {
	if there, err := r.exists(from); err != nil || !there {
		return err
	}
	if dir := path.Dir(to); dir != "." {
		if err := r.root.MkdirAll(dir, files.FolderPerm); err != nil {
			return err
		}
	}
	r.tick()
	return r.root.Rename(from, to)
}

func (r *rewrite) exists(p string) (bool, error) {
	_, err := r.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// takeBack returns what was moved, where the payload does not stand in data/ yet;
// after that, the next call completes the plan.
func (r *rewrite) takeBack(p *plan) error {
	there, err := r.exists(movedDir)
	if err != nil || !there || !p.Moves {
		return err
	}
	for _, name := range p.Move {
		name, err := layout.DecodePath(name)
		if err != nil {
			return err
		}
		if err := r.rename(path.Join(movedDir, name), name); err != nil {
			return err
		}
	}
	r.committed = false // close takes the rest away
	return r.root.Remove(planFile)
}

// finish makes the moves durable before the plan goes. A crash before the plan is
// gone repeats it, which changes nothing.
func (r *rewrite) finish() error {
	r.tick()
	if r.sync {
		if err := disk.SyncFS(r.dir); err != nil {
			return err
		}
	}
	if err := r.discard(); err != nil {
		return err
	}
	r.finished = true
	if r.sync {
		return disk.SyncDir(r.dir)
	}
	return nil
}

// discard takes WorkDir away, the plan after what is new, so that a crash between
// leaves no half of it. Payload that still stands in it is never deleted.
func (r *rewrite) discard() error {
	r.tick()
	if err := r.root.RemoveAll(newDir); err != nil {
		return err
	}
	r.tick()
	if err := r.root.Remove(movedDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds payload, and no plan says what it is: move it back by hand: %w", movedDir, err)
	}
	r.tick()
	return r.root.RemoveAll(WorkDir)
}

// close ends the change; one that was not committed leaves nothing. err is what ended
// it, nil where nothing did; the answer says what stands now.
func (r *rewrite) close(err error) error {
	var left error
	if r.begun && !r.committed {
		left = r.discard()
	}
	switch {
	case err == nil || !r.begun || r.finished:
	case r.committed || left != nil:
		err = fmt.Errorf("%w; the change is begun, and the next bagpipe bag create --in-place or update of the folder completes or undoes it", err)
	default:
		err = fmt.Errorf("%w; the folder is as it was", err)
	}
	return errors.Join(err, left, r.unlock())
}

func (r *rewrite) unlock() error {
	var err error
	if r.lock != nil {
		err = r.lock.Close()
	}
	return errors.Join(err, r.root.Close())
}
