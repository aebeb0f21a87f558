package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// How something was found to stand.
const (
	Good  = "good"
	Poor  = "poor"  // it works, and a person should know
	Wrong = "wrong" // it does not work

	Unseen = "unseen" // it was not looked at
)

// Finding is one thing that was looked at.
type Finding struct {
	About string `json:"about"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// Doctor looks at a workspace.
type Doctor struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	deposits func(own string) bool
	found    []Finding
}

// New gives a doctor for a workspace that is open, for reading at least. deposits reports
// whether some were made before in the store that a step names; "" is that of the settings.
func New(l *ledger.Ledger, s *settings.Source, deposits func(own string) bool) *Doctor {
	return &Doctor{ledger: l, settings: s, deposits: deposits}
}

// Look looks at everything.
func (d *Doctor) Look(ctx context.Context) []Finding {
	d.found = nil
	d.account()
	if d.ledger.Clone {
		d.say("clone", Good, "of a workspace: its store, file systems, hook and programs are looked at there")
		d.clock(ctx)
		d.git()
		return d.found
	}
	d.mounts(ctx)
	d.fileSystem()
	d.clock(ctx)
	d.space()
	d.targets()
	d.git()
	d.repository()
	d.programs()
	return d.found
}

func (d *Doctor) say(about, state, format string, args ...any) {
	d.found = append(d.found, Finding{about, state, fmt.Sprintf(format, args...)})
}

// all says what is not as it should be, or that everything is.
func (d *Doctor) all(about, state, good string, bad []string) {
	if len(bad) == 0 {
		d.say(about, Good, "%s", good)
	}
	for _, text := range bad {
		d.say(about, state, "%s", text)
	}
}

func (d *Doctor) account() {
	of := map[string][]string{} // folders by their owner
	for _, dir := range layout.KeptDirs() {
		owner, err := disk.ForeignOwner(d.ledger.Path(dir))
		if err == nil && owner != "" {
			of[owner] = append(of[owner], dir)
		}
	}
	var bad []string
	for _, owner := range slices.Sorted(maps.Keys(of)) {
		bad = append(bad, fmt.Sprintf("of %s, and this is %s: %s", owner, disk.AccountName(os.Geteuid()), strings.Join(of[owner], ", ")))
	}
	d.all("account", Wrong, "the workspace belongs to "+disk.AccountName(os.Geteuid()), bad)
}

// store is a folder that deposits go to: that of the settings, or of a step's own.
type store struct{ about, own, dir string }

// stores gives the store of the settings, then those that steps of the definitions in force name.
func (d *Doctor) stores() []store {
	c := d.settings.Current()
	all := []store{{"store", "", c.Settings.StoreDir(d.ledger.Root)}}
	for _, name := range slices.Sorted(maps.Keys(c.Workflows)) {
		for _, step := range c.Workflows[name].Def.Steps {
			own, _ := step.With["store"].(string)
			if own != "" && len(step.Command) == 0 && !slices.ContainsFunc(all, func(s store) bool { return s.own == own }) {
				all = append(all, store{fmt.Sprintf("store of %s/%s", name, step.Name), own, settings.Below(d.ledger.Root, own)})
			}
		}
	}
	return all
}

func (d *Doctor) mounts(ctx context.Context) {
	if err := d.ledger.CheckMounted(); err != nil {
		d.say("mounts", Wrong, "%v", err)
		return
	}
	mark, err := d.ledger.Mark(ctx)
	if err != nil {
		d.say("store", Wrong, "%v", err)
		return
	}
	for _, s := range d.stores() {
		d.store(s, mark)
	}
}

func (d *Doctor) store(s store, mark layout.Mark) {
	data, err := disk.ReadFile(filepath.Join(s.dir, layout.StoreFile))
	if err != nil && d.deposits(s.own) {
		d.say(s.about, Wrong, "%s has no %s, and deposits were made before: is it mounted?", layout.EncodePath(s.dir), layout.StoreFile)
		return
	}
	if err != nil {
		d.say(s.about, Good, "%s has no %s: the first deposit makes it", layout.EncodePath(s.dir), layout.StoreFile)
		return
	}
	listed, err := layout.DecodeStore(data)
	if _, ours := listed.Workspaces[mark]; err != nil || !ours {
		d.say(s.about, Wrong, "%s is not this workspace's: its %s does not list the mark %s", layout.EncodePath(s.dir), layout.StoreFile, mark)
		return
	}
	real, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		d.say(s.about, Wrong, "%v", err)
		return
	}
	where := "on the file system of the workspace"
	if same, err := disk.SameFileSystem(d.ledger.Root, real); err != nil || !same {
		where = "on a file system of its own"
	}
	d.say(s.about, Good, "%s is this workspace's, %s", layout.EncodePath(s.dir), where)
}

func (d *Doctor) clock(ctx context.Context) {
	now := d.ledger.Clock()
	for c, err := range d.ledger.Store.History(ctx, gitstore.HistoryOptions{Limit: 1}) {
		if err != nil {
			d.say("history", Wrong, "%v", err)
			return
		}
		if ahead := c.When.Sub(now); ahead > time.Minute {
			d.say("clock", Wrong, "the last commit is of %s, %s from now: the clock was set back", c.When.Format(time.RFC3339), ahead.Round(time.Second))
			return
		}
	}
	d.say("clock", Good, "%s, and no commit is ahead of it", now.UTC().Format(time.RFC3339))
}

func (d *Doctor) space() {
	s := d.settings.Current().Settings
	look := func(about, dir string) {
		free, err := disk.Free(dir)
		if err != nil {
			return // told under its mounts
		}
		inodes, bounded, err := disk.FreeInodes(dir)
		switch {
		case free < s.Free():
			d.say(about, Wrong, "%s free, less than limits: free: nothing is taken in or started", layout.FormatSize(free))
		case err == nil && bounded && inodes < 10_000:
			d.say(about, Poor, "%s free, and room for %d more files", layout.FormatSize(free), inodes)
		default:
			d.say(about, Good, "%s free", layout.FormatSize(free))
		}
	}
	look("space", d.ledger.Root)
	for _, s := range d.stores() {
		look("space of the "+s.about, s.dir)
	}
}

func (d *Doctor) git() {
	out, err := exec.Command("git", "--version").Output()
	if err != nil {
		d.say("git", Poor, "there is no git program: history is read and pushed by it, and maintenance needs it")
	} else {
		d.say("git", Good, "%s", strings.TrimSpace(string(out)))
	}
}

// repository looks at the settings and the hook of the workspace's own.
func (d *Doctor) repository() {
	odd, err := gitstore.OddConfig(d.ledger.Root)
	if err != nil {
		odd = []string{err.Error()}
	}
	d.all("git config", Poor, "as init makes it", odd)
	hook := d.ledger.Path(layout.RepositoryDir + "/hooks/pre-receive")
	if info, err := os.Stat(hook); err != nil || info.Mode()&0o111 == 0 {
		d.say("hook", Poor, "there is no %s: pushed settings are not checked before they land", layout.RepositoryDir+"/hooks/pre-receive")
	} else {
		d.say("hook", Good, "pushed settings are checked before they land")
	}
}

// programs looks for those of the definitions in force; what no setting sends drops to may
// be there for later.
func (d *Doctor) programs() {
	c := d.settings.Current()
	used := map[string]bool{c.Settings.Defaults.Workflow: true}
	for name := range c.Settings.Collections {
		used[c.Settings.Collection(layout.Name(name)).Workflow] = true
	}
	n, found := 0, 0
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(c.Workflows)) {
		var missing []string
		for _, step := range c.Workflows[name].Def.Steps {
			if len(step.Command) == 0 {
				continue
			}
			n++
			if d.runs(step.Command[0]) {
				found++
			} else if !slices.Contains(missing, step.Command[0]) {
				missing = append(missing, step.Command[0])
			}
		}
		switch {
		case len(missing) == 0:
		case used[name]:
			d.say("programs", Wrong, "workflow %s: not there: %s", name, strings.Join(missing, ", "))
		default:
			unused = append(unused, fmt.Sprintf("%s (%s)", name, strings.Join(missing, ", ")))
		}
	}
	if len(unused) > 0 {
		d.say("programs", Good, "not there, and wanted only by workflows to which no collection sends drops: %s", strings.Join(unused, "; "))
	}
	if found == n {
		d.say("programs", Good, "those of %s that run one are there", layout.Count(n, "step"))
	}
}

func (d *Doctor) runs(program string) bool {
	if strings.Contains(program, "/") {
		program = settings.Below(d.ledger.Root, program)
	}
	_, err := exec.LookPath(program)
	return err == nil
}
