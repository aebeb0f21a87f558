package settings

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/bags/fetch"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/notice"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps/form"
	"bagpipe/steps/target"
)

func (s *Settings) CheckLane(lane string) error {
	if lane == "" || s.LaneRank(layout.Name(lane)) < len(s.LaneNames()) {
		return nil
	}
	return fmt.Errorf("no lane %q; the lanes are %s", lane, strings.Join(s.LaneNames(), ", "))
}

func (s *Settings) QueueLanes() (lanes queue.Lanes) {
	for _, l := range s.LaneNames() {
		lanes.Names = append(lanes.Names, layout.Name(l))
	}
	for name, w := range s.LaneWeights {
		if lanes.Weights == nil {
			lanes.Weights = map[layout.Name]float64{}
		}
		lanes.Weights[layout.Name(name)] = w
	}
	return lanes
}

const settingsSchema = 1

// Settings are bagpipe.yaml.
type Settings struct {
	Schema      int                      `yaml:"schema"`
	Defaults    Collection               `yaml:"defaults"`
	Lanes       []string                 `yaml:"lanes"`
	LaneWeights map[string]float64       `yaml:"laneWeights"` // how lanes share; none: each gets twenty steps for one of the next
	Inbox       InboxSettings            `yaml:"inbox"`
	Limits      LimitSettings            `yaml:"limits"`
	Retry       RetrySettings            `yaml:"retry"`
	Store       string                   `yaml:"store"`
	Fetch       FetchSettings            `yaml:"fetch"`
	Targets     map[string]target.Config `yaml:"targets"`
	Collections map[string]Collection    `yaml:"collections"`
	Deploying   `yaml:",inline"`
	Telling     `yaml:",inline"`
	Describing  `yaml:",inline"`
	Readers     map[string]Reader `yaml:"readers"`
}

// Telling says who hears of what is done: other sites, and people.
type Telling struct {
	Sync   SyncSettings            `yaml:"sync"`
	Notify map[string]*notice.Wish `yaml:"notify"`
	Trust  TrustSettings           `yaml:"trust"`
	Anchor AnchorSettings          `yaml:"anchor"`
}

// Deploying says how steps are run, and where.
type Deploying struct {
	Steps   map[string]Deployment `yaml:"steps"`  // by WORKFLOW/STEP, /STEP or defaults
	Robots  map[string]Deployment `yaml:"robots"` // by robot or program
	Workers WorkerSettings        `yaml:"workers"`
	Drain   layout.Duration       `yaml:"drain"` // how long a run that is to stop waits for what is at work
}

// Collection says what becomes of what is dropped in inbox/NAME.
type Collection struct {
	Workflow  string   `yaml:"workflow"`
	Lane      string   `yaml:"lane"`
	Approvals []string `yaml:"approvals"` // steps with onRequest: true that a person must complete
	InFlight  int      `yaml:"inFlight"`  // its items under way at once; 0: any number
	Profiles  []string `yaml:"profiles"`  // files of BagIt profiles that bags must satisfy
	Targets   []string `yaml:"targets"`   // where bags are deposited; none: in the store
	Copies    int      `yaml:"copies"`    // verified ones that complete a deposit; 0: one on each target

	Bag *form.Bag `yaml:"bag"` // what its bags say besides

	Inbox *DropSettings `yaml:"inbox"` // what differs from inbox: for its drops
}

// RequiredAt says whose commits must be signed by the settings of a commit; those that cannot
// be read require nothing.
func RequiredAt(r gitstore.Reader) []string { return having(r, "trust:").Trust.Require }

// SilenceAt says, by the settings of a commit, how long a remote may say nothing; 0: they do not say.
func SilenceAt(r gitstore.Reader) time.Duration {
	return time.Duration(having(r, "silence:").Sync.Silence)
}

// having gives the settings of a commit where they may have a key; else, and where they cannot be read, such as say nothing.
func having(r gitstore.Reader, key string) *Settings {
	data, err := r.ReadFile(layout.SettingsFile)
	if err != nil || !bytes.Contains(data, []byte(key)) {
		return &Settings{}
	}
	s, err := ParseSettings(layout.SettingsFile, data)
	if err != nil {
		return &Settings{}
	}
	return s
}

// ParseSettings reads and checks bagpipe.yaml; its errors are *layout.FileError.
func ParseSettings(file string, data []byte) (*Settings, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	s := &Settings{}
	if err := y.Decode(s); err != nil {
		return nil, err
	}
	if s.Schema != settingsSchema {
		return nil, y.Errorf("$.schema", "expected schema: %d", settingsSchema)
	}
	if err := s.check(y); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Settings) check(y *layout.YAML) error {
	if err := checkLanes(s, y); err != nil {
		return err
	}
	if err := checkDeployment(s, y); err != nil {
		return err
	}
	if err := s.Workers.check(y); err != nil {
		return err
	}
	if err := checkTargets(s, y); err != nil {
		return err
	}
	if err := s.Web.check(y); err != nil {
		return err
	}
	if err := notice.Check(y, s.Notify); err != nil {
		return err
	}
	for i, who := range s.Trust.Require {
		if who != "people" && who != "sites" {
			return y.Errorf(fmt.Sprintf("$.trust.require[%d]", i), "expected people or sites, not %q", who)
		}
	}
	if err := checkCollection(s, y, "$.defaults", s.Defaults); err != nil {
		return err
	}
	for name, c := range s.Collections {
		if _, err := layout.ParseName(name); err != nil {
			return y.Errorf("$.collections", "collection %v", err)
		}
		if err := checkCollection(s, y, "$.collections."+name, c); err != nil {
			return err
		}
	}
	if err := s.Inbox.check(y, "$.inbox"); err != nil {
		return err
	}
	if c := s.Inbox.Collections; c != "" && c != "listed" && c != openCollections {
		return y.Errorf("$.inbox.collections", "expected listed or open, not %q", c)
	}
	if s.Defaults.Inbox != nil {
		return y.Errorf("$.defaults.inbox", "what holds for all inboxes stands below inbox:")
	}
	if err := checkReaders(s, y); err != nil {
		return err
	}
	for i, h := range s.Fetch.Hosts {
		if err := (fetch.Allowed{Hosts: []string{h}}).Check(); err != nil {
			return y.Errorf(fmt.Sprintf("$.fetch.hosts[%d]", i), "%v", err)
		}
	}
	return checkLimits(s, y)
}

func checkLanes(s *Settings, y *layout.YAML) error {
	for i, l := range s.Lanes {
		if _, err := layout.ParseName(l); err != nil {
			return y.Errorf(fmt.Sprintf("$.lanes[%d]", i), "%v", err)
		}
	}
	for name, w := range s.LaneWeights {
		if !slices.Contains(s.LaneNames(), name) {
			return y.Errorf("$.laneWeights", "no lane %q; the lanes are %s", name, strings.Join(s.LaneNames(), ", "))
		}
		if w <= 0 || w > 1e6 {
			return y.Errorf("$.laneWeights."+name, "expected a number above 0, as in 5")
		}
	}
	return nil
}

func checkLimits(s *Settings, y *layout.YAML) error {
	l := s.Limits
	if l.Room < 0 || l.Room > 1000 {
		return y.Errorf("$.limits.room", "expected a number from 0 (the default) to 1000, as in 1.5")
	}
	for key, v := range map[string]int64{"files": l.Files, "ratio": l.Ratio, "path": int64(l.Path), "depth": int64(l.Depth), "inFlight": int64(l.InFlight)} {
		if v < 0 {
			return y.Errorf("$.limits."+key, "expected a number from 0 (the default) up")
		}
	}
	return nil
}

func checkCollection(s *Settings, y *layout.YAML, at string, c Collection) error {
	if c.Workflow != "" {
		if _, err := layout.ParseName(c.Workflow); err != nil {
			return y.Errorf(at+".workflow", "%v", err)
		}
	}
	if c.Lane != "" && !slices.Contains(s.LaneNames(), c.Lane) {
		return y.Errorf(at+".lane", "no lane %q; the lanes are %s", c.Lane, strings.Join(s.LaneNames(), ", "))
	}
	if err := checkGoals(s, y, at, c); err != nil {
		return err
	}
	if c.Bag != nil {
		if key, err := c.Bag.Check(); err != nil {
			return y.Errorf(at+".bag."+key, "%v", err)
		}
	}
	if c.InFlight < 0 {
		return y.Errorf(at+".inFlight", "expected a number from 0 (any number) up")
	}
	for i, a := range c.Approvals {
		if _, err := layout.ParseName(a); err != nil {
			return y.Errorf(fmt.Sprintf("%s.approvals[%d]", at, i), "%v", err)
		}
	}
	if c.Inbox != nil {
		if err := c.Inbox.check(y, at+".inbox"); err != nil {
			return err
		}
	}
	for i, p := range c.Profiles {
		if p == "" {
			return y.Errorf(fmt.Sprintf("%s.profiles[%d]", at, i), "expected a profile's file, relative to the workspace")
		}
	}
	return nil
}

// Drops gives what is set for the drops of a collection.
func (s *Settings) Drops(name layout.Name) DropSettings {
	return s.Collections[string(name)].Inbox.over(s.Inbox.DropSettings)
}

// HasCollection tells whether drops and items may be of a collection; folder says that
// inbox/NAME is there.
func (s *Settings) HasCollection(name string, folder bool) bool {
	_, listed := s.Collections[name]
	return listed || name == defaultCollection || folder && s.Inbox.Collections == openCollections
}

// defaultCollection is one whether it is listed or not.
const defaultCollection = "default"

// Settling is for the collections that are not listed.
func (s *Settings) Settling() inbox.Settling {
	all := s.Inbox.Settling()
	all.Listed = s.Inbox.Collections != openCollections
	return all
}

// SettlingByCollection is for the collections that are listed.
func (s *Settings) SettlingByCollection() map[layout.Name]inbox.Settling {
	of := map[layout.Name]inbox.Settling{defaultCollection: s.Drops(defaultCollection).Settling()}
	for name := range s.Collections {
		of[layout.Name(name)] = s.Drops(layout.Name(name)).Settling()
	}
	return of
}

// Quiet is for how long what a run waits for must be still: what is set for all, or a
// collection's, if that is no longer than such a run should take.
func (s *Settings) Quiet() time.Duration {
	const patience = 30 * time.Second
	longest := s.Inbox.Settling().QuietTime()
	for _, c := range s.SettlingByCollection() {
		if q := c.QuietTime(); q <= patience {
			longest = max(longest, q)
		}
	}
	return longest
}

func (s *Settings) LaneNames() []string {
	if len(s.Lanes) == 0 {
		return []string{"normal"}
	}
	return s.Lanes
}

// LaneRank orders lanes: the first is the most urgent; one that has since been
// removed from the settings comes last.
func (s *Settings) LaneRank(lane layout.Name) int {
	if i := slices.Index(s.LaneNames(), string(lane)); i >= 0 {
		return i
	}
	return len(s.LaneNames())
}

// OwnInFlight is how many items of a collection may be under way; 0: any number.
func (s *Settings) OwnInFlight(name layout.Name) int {
	return cmp.Or(s.Collections[string(name)].InFlight, s.Defaults.InFlight)
}

// LaneShare is how much a lane gets, beside others: by its weight, or twenty times as much
// as the next.
func (s *Settings) LaneShare(lane string) float64 {
	if len(s.LaneWeights) > 0 {
		return cmp.Or(s.LaneWeights[lane], 1)
	}
	return math.Pow(20, -float64(s.LaneRank(layout.Name(lane))))
}

// Collection gives the settings of a collection with the defaults filled in.
func (s *Settings) Collection(name layout.Name) Collection {
	c := s.Collections[string(name)]
	c.Workflow = cmp.Or(c.Workflow, s.Defaults.Workflow)
	c.Lane = cmp.Or(c.Lane, s.Defaults.Lane, s.LaneNames()[0])
	if c.Approvals == nil {
		c.Approvals = s.Defaults.Approvals
	}
	if c.Profiles == nil {
		c.Profiles = s.Defaults.Profiles
	}
	if c.Targets == nil {
		c.Targets = s.Defaults.Targets
	}
	c.Bag = cmp.Or(c.Bag, s.Defaults.Bag)
	c.Copies = cmp.Or(c.Copies, s.Defaults.Copies)
	return c
}

func (s *Settings) ArchiveLimits() archive.Limits {
	return archive.Limits{
		Files: s.Limits.Files, Bytes: int64(s.Limits.Bytes), FileBytes: int64(s.Limits.FileBytes),
		Ratio: s.Limits.Ratio, PathLength: s.Limits.Path, Depth: s.Limits.Depth,
		Memory: int64(s.Limits.Memory), Time: time.Duration(s.Limits.Time),
	}
}

// Allowed gives where files may be fetched from.
func (s *Settings) Allowed(root string) fetch.Allowed {
	a := fetch.Allowed{Hosts: s.Fetch.Hosts}
	for _, f := range s.Fetch.Folders {
		a.Folders = append(a.Folders, Below(root, f))
	}
	return a
}

// AllowedFetches gives what the settings of the workspace at root allow bags to be
// completed from, without opening it.
func AllowedFetches(root string) (fetch.Allowed, error) {
	file := filepath.Join(root, layout.SettingsFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return fetch.Allowed{}, fmt.Errorf("read settings: %w", err)
	}
	s, err := ParseSettings(file, data)
	if err != nil {
		return fetch.Allowed{}, err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return fetch.Allowed{}, fmt.Errorf("find the workspace: %w", err)
	}
	return s.Allowed(root), nil
}

// Profiles are the files of the BagIt profiles that a collection's bags must
// satisfy.
func (s *Settings) Profiles(root string, name layout.Name) []string {
	var files []string
	for _, p := range s.Collection(name).Profiles {
		files = append(files, Below(root, p))
	}
	return files
}

// StoreDir is where deposits go.
func (s *Settings) StoreDir(root string) string {
	return Below(root, cmp.Or(s.Store, "store"))
}

// Below resolves a path that people wrote relative to the workspace.
func Below(root, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(root, path)
}

// Pauses where the settings name none.
const (
	defaultRetryFirst = time.Second
	defaultRetryMost  = 5 * time.Minute
	defaultLater      = time.Minute
	defaultDrain      = 40 * time.Second
	defaultFree       = 256 << 20
)

func (s *Settings) Backoff() runner.Backoff {
	return runner.Backoff{First: cmp.Or(time.Duration(s.Retry.First), defaultRetryFirst), Most: cmp.Or(time.Duration(s.Retry.Most), defaultRetryMost)}
}

// BackoffOf is the pause before a failed step is tried again, with what the step says of its own.
func (s *Settings) BackoffOf(step *state.Step) runner.Backoff {
	b := s.Backoff()
	if own := step.Backoff; own != nil && own.First > 0 {
		b.First = time.Duration(own.First)
		b.Most = max(b.Most, b.First)
	}
	if own := step.Backoff; own != nil && own.Most > 0 {
		b.Most = time.Duration(own.Most)
	}
	return b
}

func (s *Settings) LaterPause() time.Duration {
	if s.Retry.Later > 0 {
		return time.Duration(s.Retry.Later)
	}
	return defaultLater
}

// DrainTime is how long a run that is to stop waits for what is at work.
func (s *Settings) DrainTime() time.Duration { return cmp.Or(time.Duration(s.Drain), defaultDrain) }

// Free is the space below which nothing is taken in or started.
func (s *Settings) Free() uint64 {
	if s.Limits.Free > 0 {
		return uint64(s.Limits.Free)
	}
	return defaultFree
}

func (s *Settings) Rescan() time.Duration {
	if s.Inbox.Rescan > 0 {
		return time.Duration(s.Inbox.Rescan)
	}
	return 10 * time.Second
}

// defaultRoom is for the content unpacked, and for its copy in the store.
const defaultRoom = 2

func (s *Settings) Room() float64 {
	if s.Limits.Room > 0 {
		return s.Limits.Room
	}
	return defaultRoom
}
