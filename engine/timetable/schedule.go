package timetable

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/layout"

	"github.com/netresearch/go-cron"
)

// Schedule is one file, read and checked.
type Schedule struct {
	Schema      int     `yaml:"schema"`
	Name        string  `yaml:"name"`
	Description string  `yaml:"description"`
	Trigger     Trigger `yaml:"trigger"`
	Zone        string  `yaml:"zone"`
	From        string  `yaml:"from"`
	Until       string  `yaml:"until"`
	Do          Do      `yaml:"do"`
	Missed      string  `yaml:"missed"`
	Within      string  `yaml:"within"`
	Parallel    int     `yaml:"parallel"`
	Overlap     string  `yaml:"overlap"`
	Timeout     string  `yaml:"timeout"`
	Keep        string  `yaml:"keep"`

	reckoned reckoned
}

// Trigger is one of a cron line, a length of time, a moment and a named queue in which
// something is ready.
type Trigger struct {
	Cron    string   `yaml:"cron"`
	Every   string   `yaml:"every"`
	At      string   `yaml:"at"`
	Queue   string   `yaml:"queue"`
	Between []string `yaml:"between"` // of Every and Queue: two times of the day

	// What those who know the seed's triggers write; each is refused by name.
	MemQueue any `yaml:"mem_queue"`
	Other    any `yaml:"other"`
}

// String is the trigger as people read it.
func (t Trigger) String() string {
	text := "at " + t.At
	switch {
	case t.Cron != "":
		text = "cron " + t.Cron
	case t.Every != "":
		text = "every " + t.Every
	case t.Queue != "":
		text = "queue " + t.Queue
	}
	if len(t.Between) > 0 {
		text += " between " + strings.Join(t.Between, " and ")
	}
	return text
}

// Do is what is done: one of Command, Deliver, Dispose, Feeds, Fixity, Scan, Read, Start and Queue.
type Do struct {
	Queue   string         `yaml:"queue"` // a named queue, worked on until it is empty
	Command []string       `yaml:"command"`
	With    map[string]any `yaml:"with"`
	Fixity  string         `yaml:"fixity"` // items, store, targets, catalogs; or due
	Sweep   `yaml:",inline"`
	Start   string `yaml:"start"`
	Scan    string `yaml:"scan"` // a catalog
	Read    string `yaml:"read"` // a reader
	Where   string `yaml:"where"`
	Others  `yaml:",inline"`

	Parallel int              `yaml:"-"` // of the schedule: how much is done at once; 0: as much as can be
	Out      io.Writer        `yaml:"-"` // of a firing: its log
	By       string           `yaml:"-"` // the schedule
	Since    time.Time        `yaml:"-"` // of a firing that is resumed: when it was begun; zero: it is not
	Which    *condition.Where `yaml:"-"` // nil: all
}

// String is the deed as people read it.
func (d Do) String() string {
	switch {
	case d.Queue != "":
		return "work on queue " + d.Queue
	case len(d.Command) > 0:
		return "command " + strings.Join(d.Command, " ")
	case d.Fixity != "":
		return "check fixity of " + d.Fixity
	case d.Start != "":
		return "start workflow " + d.Start
	case d.Scan != "":
		return "scan catalog " + d.Scan
	case d.Read != "":
		return "read from " + d.Read
	case d.Deliver != "":
		return "deliver what is " + d.Deliver
	case d.Dispose != "":
		return "dispose of what is " + d.Dispose
	}
	return "write feeds to " + d.Feeds
}

// Sweep is how a check of fixity goes.
type Sweep struct {
	Sample string        `yaml:"sample"`
	Older  string        `yaml:"older"`
	Every  string        `yaml:"every"` // each item once in so long
	Rate   string        `yaml:"rate"`  // bytes in a second, as 50MiB/s
	At     []layout.Name `yaml:"at"`    // of targets these alone
	Heal   bool          `yaml:"heal"`

	Part     float64       `yaml:"-"` // Sample, as a part of 1; 0: all
	OlderFor time.Duration `yaml:"-"`
	EveryFor time.Duration `yaml:"-"`
	PerSec   int64         `yaml:"-"`
}

// Others are what is done with the work of other rooms.
type Others struct {
	Deliver string `yaml:"deliver"` // due: what delivery rules want
	Dispose string `yaml:"dispose"` // due: what retention rules want is proposed, what is approved is carried out
	Feeds   string `yaml:"feeds"`   // a folder for the feeds
}

// reckoned is what the texts of a schedule say.
type reckoned struct {
	zone         *time.Location
	cron         cron.Schedule // of the wall's times; nil: none
	hourly       bool          // the line is for every hour
	every        time.Duration
	months       int // of every, by the calendar
	at           time.Time
	from, until  time.Time
	hours        Hours
	within, most time.Duration
	keep         time.Duration
}

// What is done with what was missed.
const (
	MissedOnce = "once"
	MissedSkip = "skip"
	MissedAll  = "all"
)

// What falls due while a firing runs is absorbed, unless it is done after it, or instead of it.
const (
	OverlapWait    = "wait"
	OverlapReplace = "replace"
)

const schema = 1

// Parse reads schedules/NAME.yaml; its errors are *layout.FileError.
func Parse(file string, data []byte) (*Schedule, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	s := &Schedule{}
	if err := y.Decode(s); err != nil {
		return nil, err
	}
	if s.Schema != schema {
		return nil, y.Errorf("$.schema", "expected schema: %d", schema)
	}
	if _, err := layout.ParseName(s.Name); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	if want := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml"); want != s.Name {
		return nil, y.Errorf("$.name", "expected the file's name without .yaml, not %q", s.Name)
	}
	for _, read := range []func() (string, error){s.readZone, s.readTrigger, s.readDo, s.readRest} {
		if at, err := read(); err != nil {
			return nil, y.Errorf(at, "%v", err)
		}
	}
	return s, nil
}

func (s *Schedule) readZone() (at string, err error) {
	r := &s.reckoned
	if r.zone, err = time.LoadLocation(s.Zone); err != nil || s.Zone == "Local" {
		return "$.zone", fmt.Errorf("expected a time zone such as Europe/Berlin, not %q", s.Zone)
	}
	if r.from, err = s.moment(s.From); err != nil {
		return "$.from", err
	}
	if r.until, err = s.moment(s.Until); err != nil {
		return "$.until", err
	}
	if !r.until.IsZero() && !r.until.After(r.from) {
		return "$.until", fmt.Errorf("expected a time after from: %s", s.From)
	}
	return "", nil
}

// moment reads a date of the schedule's zone, or a full time.
func (s *Schedule) moment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation(time.DateOnly, text, s.reckoned.zone)
	if err != nil {
		return t, fmt.Errorf("expected a date as 2026-12-01 or a time as 2026-12-01T18:00:00+01:00, not %q", text)
	}
	return t, nil
}

func (s *Schedule) readTrigger() (at string, err error) {
	t, r := s.Trigger, &s.reckoned
	given := 0
	for _, text := range []string{t.Cron, t.Every, t.At, t.Queue} {
		if text != "" {
			given++
		}
	}
	switch {
	case t.MemQueue != nil:
		return "$.trigger.mem_queue", fmt.Errorf("there are no queues in memory: name one of queues/ under queue:, which outlives every process")
	case t.Other != nil:
		return "$.trigger.other", fmt.Errorf("other: says nothing; a program of any trigger fires the schedule itself")
	case given != 1:
		return "$.trigger", fmt.Errorf("expected one of cron, every, at and queue")
	}
	if at, err = s.readBetween(); err != nil {
		return at, err
	}
	switch {
	case t.Queue != "":
		if _, err := layout.ParseName(t.Queue); err != nil {
			return "$.trigger.queue", err
		}
	case t.Cron != "":
		fields := strings.Fields(t.Cron)
		if len(fields) != 5 {
			return "$.trigger.cron", fmt.Errorf("expected five fields, minute hour day month weekday, not %q", t.Cron)
		}
		if r.cron, err = cron.ParseStandard(t.Cron); err != nil {
			return "$.trigger.cron", cronFault(fields)
		}
		r.hourly = strings.HasPrefix(fields[1], "*")
		if _, ever := s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}); !ever && s.From == "" && s.Until == "" {
			return "$.trigger.cron", fmt.Errorf("%q is never due", t.Cron)
		}
	case strings.HasSuffix(t.Every, "mo"):
		if r.months, err = strconv.Atoi(strings.TrimSuffix(t.Every, "mo")); err != nil || r.months < 1 || r.months > 1200 {
			return "$.trigger.every", fmt.Errorf("expected a number of months such as 1mo, not %q", t.Every)
		}
		r.every = time.Duration(r.months) * 28 * 24 * time.Hour // at least
	case t.Every != "":
		if r.every, err = layout.ParseDuration(t.Every); err != nil || r.every < time.Second {
			return "$.trigger.every", fmt.Errorf("expected a time such as 30s, 6h, 7d or 1mo, not %q", t.Every)
		}
	default:
		if r.at, err = s.moment(t.At); err != nil {
			return "$.trigger.at", err
		}
	}
	return "", nil
}

// readBetween reads two times of the day, of which the second may be one of the next day.
func (s *Schedule) readBetween() (at string, err error) {
	switch {
	case len(s.Trigger.Between) == 0:
		return "", nil
	case s.Trigger.Every == "" && s.Trigger.Queue == "":
		return "$.trigger.between", fmt.Errorf("between: bounds every: and queue:; the others name their times themselves")
	}
	s.reckoned.hours, err = ParseHours(s.Trigger.Between, s.reckoned.zone)
	return "$.trigger.between", err
}

func (s *Schedule) readDo() (at string, err error) {
	d := &s.Do
	if s.Trigger.Queue != "" && reflect.DeepEqual(*d, Do{}) {
		d.Queue = s.Trigger.Queue
	}
	d.Parallel, d.By = s.Parallel, s.Name
	given := 0
	for _, is := range []bool{len(d.Command) > 0, d.Fixity != "", d.Start != "", d.Scan != "", d.Read != "", d.Queue != "", d.Deliver != "", d.Dispose != "", d.Feeds != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return "$.do", fmt.Errorf("do: says what is done, and has one of command, deliver, dispose, feeds, fixity, queue, read, scan and start")
	case s.Trigger.Queue != "" && d.Queue != s.Trigger.Queue:
		return "$.do", fmt.Errorf("what a queue triggers is work on that queue; make a program the robot of its step")
	case s.Parallel < 0 || s.Parallel > 0 && d.Queue == "" && !d.sweeps():
		return "$.parallel", fmt.Errorf("expected a number from 1 up, of queue or fixity")
	case d.With != nil && len(d.Command) == 0:
		return "$.do.with", fmt.Errorf("with: is given to a command")
	case !d.sweeps() && (d.Sample != "" || d.Older != "" || d.Every != "" || d.Rate != "" || len(d.At) > 0 || d.Heal):
		return "$.do", fmt.Errorf("sample:, older:, every:, rate:, at: and heal: are of fixity")
	case d.Every != "" && (d.Sample != "" || d.Older != ""):
		return "$.do.every", fmt.Errorf("every: says how many by itself; sample: and older: go without it")
	case d.Where != "" && d.Start == "":
		return "$.do.where", fmt.Errorf("where: says on which items a workflow is started")
	case d.Deliver != "" && d.Deliver != "due":
		return "$.do.deliver", fmt.Errorf("expected due, not %q", d.Deliver)
	case d.Dispose != "" && d.Dispose != "due":
		return "$.do.dispose", fmt.Errorf("expected due, not %q", d.Dispose)
	case d.Fixity != "" && d.Fixity != "due" && !d.sweeps():
		return "$.do.fixity", fmt.Errorf("expected items, store, targets, catalogs or due, not %q", d.Fixity)
	}
	if at, err = d.readSweep(); err != nil {
		return at, err
	}
	if d.Sample != "" {
		if d.Part, err = layout.ParsePart(d.Sample); err != nil {
			return "$.do.sample", err
		}
	}
	if d.Older != "" {
		if d.OlderFor, err = layout.ParseDuration(d.Older); err != nil {
			return "$.do.older", fmt.Errorf("expected a time such as 90d, not %q", d.Older)
		}
	}
	if d.Where != "" {
		if d.Which, err = condition.ParseOnRecords(d.Where); err != nil {
			return "$.do.where", err
		}
	}
	return "", nil
}

// sweeps reports whether it is a look at many items.
func (d *Do) sweeps() bool {
	return slices.Contains([]string{"items", "store", "targets", "catalogs"}, d.Fixity)
}

func (d *Do) readSweep() (at string, err error) {
	if d.Every != "" {
		if d.EveryFor, err = layout.ParseDuration(d.Every); err != nil || d.EveryFor < time.Hour {
			return "$.do.every", fmt.Errorf("expected a time such as 90d, not %q", d.Every)
		}
	}
	if d.Rate != "" {
		size, err := layout.ParseSize(strings.TrimSuffix(d.Rate, "/s"))
		if err != nil || size <= 0 {
			return "$.do.rate", fmt.Errorf("expected bytes in a second such as 50MiB/s, not %q", d.Rate)
		}
		d.PerSec = int64(size)
	}
	return "", nil
}

func (s *Schedule) readRest() (at string, err error) {
	r := &s.reckoned
	switch s.Missed {
	case "":
		s.Missed = MissedOnce
	case MissedOnce, MissedSkip, MissedAll:
	default:
		return "$.missed", fmt.Errorf("expected once, skip or all, not %q", s.Missed)
	}
	if !slices.Contains([]string{"", "skip", OverlapWait, OverlapReplace}, s.Overlap) {
		return "$.overlap", fmt.Errorf("expected skip, wait or replace, not %q", s.Overlap)
	}
	if s.Keep != "" {
		if r.keep, err = layout.ParseDuration(s.Keep); err != nil || r.keep <= 0 {
			return "$.keep", fmt.Errorf("expected a time such as 90d, not %q", s.Keep)
		}
	}
	if s.Within != "" {
		if r.within, err = layout.ParseDuration(s.Within); err != nil {
			return "$.within", fmt.Errorf("expected a time such as 24h, not %q", s.Within)
		}
	}
	if s.Timeout != "" {
		if r.most, err = layout.ParseDuration(s.Timeout); err != nil || r.most < time.Second {
			return "$.timeout", fmt.Errorf("expected a time such as 4h, not %q", s.Timeout)
		}
	}
	return "", nil
}

// Most is how long a firing may take; 0: as it likes.
func (s *Schedule) Most() time.Duration { return s.reckoned.most }

// Kept is for how long the logs of firings stay; 0: for good.
func (s *Schedule) Kept() time.Duration { return s.reckoned.keep }

// Timed reports whether the schedule names times of the clock on the wall, which a clock that
// is wrong gets wrong.
func (s *Schedule) Timed() bool { return s.Trigger.Cron != "" || s.Trigger.At != "" }

// Past reports whether the moment of at: is over.
func (s *Schedule) Past(now time.Time) bool {
	return !s.reckoned.at.IsZero() && !s.reckoned.at.After(now)
}

// Timing is what a change of which makes another timetable: what was due by the old one was
// not missed by the new.
func (s *Schedule) Timing() string { return strings.TrimSpace(s.Trigger.String() + " " + s.Zone) }
