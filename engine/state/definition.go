package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/condition"
	"bagpipe/layout"
)

const definitionSchema = 1

// Definition is a workflow as written in workflows/NAME.yaml.
type Definition struct {
	Schema      int    `yaml:"schema"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	InFlight    int    `yaml:"inFlight"` // items under way at once, in the workspace; 0: any number
	Alert       *Alert `yaml:"alert"`

	AfterFailure string `yaml:"afterFailure"` // StopAll, also without the key, or Independent
	Steps        []Step `yaml:"steps"`

	// Digest is sha256:HEX of the file's bytes; it names the pinned copy.
	Digest string `yaml:"-"`

	local   [][]int // by step: the steps of this workflow it needs
	foreign [][]Ref // by step: the steps of others it needs
	pinned  bool    // read leniently
}

// Step is one step of a definition. What the numbers mean is in the package comment.
type Step struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Milestone   string `yaml:"milestone"`
	How         `yaml:",inline"`
	Requires    *[]string        `yaml:"requires"` // STEP or WORKFLOW/STEP; absent: the step before; empty: starts at once
	When        []condition.Keys `yaml:"when"`     // all must hold, or the step is skipped
	NotBefore   *Date            `yaml:"notBefore"`
	Needs       string           `yaml:"needs"` // NeedsContent
	Optional    bool             `yaml:"optional"`
	Tries       `yaml:",inline"`
	Bounds      `yaml:",inline"`
	Multiplier  `yaml:",inline"`
	OfBatch     `yaml:",inline"`
	KeepInputs  bool   `yaml:"keepInputs"`
	Premis      string `yaml:"premis"` // what its ends are in PREMIS: one of layout.PremisTerms; "": as the robot's
}

// Following is the step, by its place, that may start once step n is done: the first that waits
// and for which all else that it requires is done, too; -1: there is none. One that requires a
// step of another workflow is passed over.
func (d *Definition) Following(n int, waits, done func(i int) bool) int {
	for i := range d.Steps {
		open := func(p int) bool { return p != n && !done(p) }
		if i != n && waits(i) && len(d.local[i]) > 0 && len(d.foreign[i]) == 0 && !slices.ContainsFunc(d.local[i], open) {
			return i
		}
	}
	return -1
}

// OfBatch says that a step is done once for a batch, and when.
type OfBatch struct {
	OnBatchComplete bool `yaml:"onBatchComplete"`
	WaitForFailed   bool `yaml:"waitForFailed"` // also items that failed keep it waiting
}

// How says how a step is done: by exactly one of Robot, Command, Manual, External and Starts;
// the first step by none.
type How struct {
	Robot     string         `yaml:"robot"`
	Command   []string       `yaml:"command"`
	Manual    bool           `yaml:"manual"`
	External  bool           `yaml:"external"`  // by a program that asks for it over HTTP, and holds a lease
	Starts    string         `yaml:"starts"`    // the workflow it starts on the same item
	Choose    []string       `yaml:"choose"`    // of a command: steps that require this one; its result names those that run
	OnRequest bool           `yaml:"onRequest"` // manual, and only where the collection's approvals list it
	With      map[string]any `yaml:"with"`      // parameters of the robot
	WarmUp    []string       `yaml:"warmUp"`    // of a command: run once in each engine before it claims the step; of a persistent one: folders that each new instance is given first

	Persistent bool `yaml:"persistent"` // of a command: started once for each instance and given item after item
	Batch      int  `yaml:"batch"`      // of a persistent command: items in one call

	Env map[string]string `yaml:"env"` // of a command: set, or put before the value of a variable whose name ends in PATH
}

// Tries say how long an attempt may take, and what follows when it fails.
type Tries struct {
	Timeout           layout.Duration `yaml:"timeout"` // 0: none
	Retries           int             `yaml:"retries"` // of system failures, by itself
	Backoff           *Backoff        `yaml:"backoff"`
	ContinueOnFailure Continue        `yaml:"continueOnFailure"` // ContinueAlways, ContinueAsk; "": it does not
	OnError           []string        `yaml:"onError"`           // the program that ContinueAsk asks
	Threshold         *Threshold      `yaml:"threshold"`
	CoolDown          layout.Duration `yaml:"coolDown"` // 0: a disabled step is enabled by a person alone
}

// Continue says whether the item goes on after a failure.
type Continue string

// Values of Continue beside "".
const (
	ContinueAlways Continue = "true"
	ContinueAsk    Continue = "ask"
)

// UnmarshalYAML reads true, false or ask.
func (c *Continue) UnmarshalYAML(b []byte) error {
	switch s := strings.Trim(strings.TrimSpace(string(b)), `"'`); s {
	case "true", "ask":
		*c = Continue(s)
	case "false":
		*c = ""
	default:
		return fmt.Errorf("expected true, false or ask, not %s", s)
	}
	return nil
}

// Bounds are how many attempts there may be at once; 0: any number.
type Bounds struct {
	Instances int `yaml:"instances"` // in one process
	Limit     int `yaml:"limit"`     // in the workspace
	Prefetch  int `yaml:"prefetch"`  // claimed ahead for each instance, where a step takes long
}

// Multiplier says how the step's children and their parent wait for each other.
type Multiplier struct {
	ParentLast     bool   `yaml:"parentLast"`
	Siblings       string `yaml:"siblings"`       // SiblingsGoOn, or SiblingsStop
	OnChildFailure string `yaml:"onChildFailure"` // ChildTell, also without the key, ChildFail or ChildSkip
	PoolSize       int    `yaml:"poolSize"`       // children alive at once; 0: any number
}

// Backoff is the pause before a failed step is tried again: doubled from try to
// try, with jitter. 0 is the workspace's own.
type Backoff struct {
	First layout.Duration `yaml:"first"`
	Most  layout.Duration `yaml:"most"`
}

// Threshold is reached by Count failures among the step's last Window ends; a
// window of 0 is all ever, a count of 0 ignores failures.
type Threshold struct {
	Count  int    `yaml:"count"`
	Window int    `yaml:"window"`
	Action string `yaml:"action"` // ActionDisable or ActionTerminate
	Per    string `yaml:"per"`    // PerInstance, PerEngine or PerWorkspace; "": see Step.CountsPer
}

// Alert is who is told of what needs a person, as a digest.
type Alert struct {
	Command []string        `yaml:"command"`
	URL     string          `yaml:"url"`
	Every   layout.Duration `yaml:"every"` // at most this often; 0: the engine chooses
}

// Words of policies.
const (
	ActionDisable   = "disable"
	ActionTerminate = "terminate"
	PerInstance     = "instance"
	PerEngine       = "engine"
	PerWorkspace    = "workspace"
	SiblingsGoOn    = "continue" // as without the key
	SiblingsStop    = "stop"
	ChildTell       = "tell" // the parent waits for what failed
	ChildFail       = "fail" // once all others are done, the next step of the parent fails
	ChildSkip       = "skip" // the parent goes on without what failed
	StopAll         = "stop" // a failed step lets nothing new of its workflow start; as without the key
	NeedsContent    = "content"
	Independent     = "independent" // steps that do not need the failed one go on
)

// Robots reports whether there is a built-in robot of that name, and what it takes.
type Robots func(name string) (r Robot, ok bool)

// Robot is what a built-in robot takes under with:. Check tells a value it would
// refuse, and of which parameter. One that is Childless makes no children: keys on them
// would do nothing.
type Robot struct {
	Parameters []string
	Check      func(with map[string]any) (parameter string, err error)
	Childless  bool
}

// ParseDefinition reads and checks a definition. robots nil is for a pinned one:
// its robot may have gone since, and what was once accepted is read for good. Its
// errors are *layout.FileError and name line and column.
func ParseDefinition(file string, data []byte, robots Robots) (*Definition, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	var d Definition
	if err := y.Decode(&d); err != nil {
		return nil, err
	}
	if err := d.check(file, y, robots); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	d.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return &d, nil
}

func (d *Definition) index(step string) int {
	return slices.IndexFunc(d.Steps, func(s Step) bool { return s.Name == step })
}

// Step finds a step by name; nil when there is none.
func (d *Definition) Step(name layout.Name) *Step {
	if i := d.index(string(name)); i >= 0 {
		return &d.Steps[i]
	}
	return nil
}

// SkipMessage is the reason with which the step is skipped. On a step that is not optional it says
// that the step is not applicable, as those that require it go on.
func (s *Step) SkipMessage(why string) string {
	if s.Optional || strings.HasPrefix(why, notApplicable) {
		return why
	}
	return strings.TrimSuffix(notApplicable+": "+why, ": ")
}

const notApplicable = "not applicable"

// Prerequisites are the indices of the steps of this workflow that step i needs.
func (d *Definition) Prerequisites(i int) []int { return d.local[i] }

// Foreign are the steps of other workflows that step i needs.
func (d *Definition) Foreign(i int) []Ref { return d.foreign[i] }

// After lists the steps that need step i, directly or through others, in order.
func (d *Definition) After(i int) (after []int) {
	reached := map[int]bool{i: true}
	for again := true; again; {
		again = false
		for j := range d.Steps {
			if !reached[j] && slices.ContainsFunc(d.local[j], func(p int) bool { return reached[p] }) {
				reached[j], again = true, true
			}
		}
	}
	for j := range d.Steps {
		if j != i && reached[j] {
			after = append(after, j)
		}
	}
	return after
}

// AsksManifest reports whether some step has a condition, or a date, that is asked
// of the manifest.
func (d *Definition) AsksManifest() bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool {
		return s.When != nil || s.NotBefore != nil && s.NotBefore.Path != ""
	})
}

// HasRobot reports whether a robot or a program does the step.
func (s *Step) HasRobot() bool { return s.Robot != "" || s.Command != nil || s.External }

// needsContent reports whether the step waits while nothing was dropped of its item: where
// its definition says so, and of robots that work on content.
func (s *Step) needsContent() bool {
	return s.Needs == NeedsContent || s.Robot != "" && s.Robot != "noop" && s.Robot != "publish"
}

// Tolerated reports whether the workflow goes on although the step failed.
func (s *Step) Tolerated() bool { return s.Optional || s.ContinueOnFailure == ContinueAlways }

// CountsPer says whose ends the step's threshold counts: those in the whole workspace, of one
// engine, or of one program that lives. Where no program lives, an instance is an engine.
func (s *Step) CountsPer() string {
	switch {
	case s.Threshold == nil, s.Threshold.Per == "" && s.Threshold.Action == ActionDisable, s.Threshold.Per == PerWorkspace:
		return PerWorkspace
	case s.Threshold.Per != PerEngine && s.Persistent:
		return PerInstance
	}
	return PerEngine
}
