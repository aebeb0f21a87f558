package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/alert"
	"bagpipe/engine/ask"
	"bagpipe/engine/attempt"
	"bagpipe/engine/catalog"
	"bagpipe/engine/claim"
	"bagpipe/engine/control"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/export"
	"bagpipe/engine/fault"
	"bagpipe/engine/feed"
	"bagpipe/engine/fixity"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/notices"
	"bagpipe/engine/reader"
	"bagpipe/engine/runner"
	"bagpipe/engine/schedule"
	"bagpipe/engine/search"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/trust"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Options are what an Engine needs from outside. Now and Random must be set.
type Options struct {
	// ReadOnly opens a workspace without writing to it: what was edited in place is
	// not taken in, and whatever would change something fails with
	// gitstore.ErrReadOnly.
	ReadOnly bool

	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger       // nil: silent
	Person gitstore.Signature // who acts, for commits that a person causes
	Robots map[layout.Name]steps.Builtin
	Host   claim.Host
	ID     layout.EngineID // "": drawn from Random
	// Program is the path of the bagpipe program, for the hook that Init makes; "": it
	// makes none.
	Program string
	Version string // of this program, for attempts and bags
	// Warn is told, once each, what a person should know though the command goes
	// on: a refused setting, a file edited in place; by several goroutines. nil: not told.
	Warn func(text string)
}

// Engine is one process at work on a workspace: the rooms, wired, and the loops of Run.
type Engine struct {
	Ledger   *ledger.Ledger
	Folder   *folder.Folders
	Settings *settings.Source
	Guard    *guard.Guard
	Control  *control.Panel
	Index    *index.Keeper
	Intake   *intake.Intake
	Attempt  *attempt.Attempts
	Act      *act.Acts
	Ask      *ask.Answers
	Capabilities

	pool atomic.Pointer[runner.Pool] // of the run under way; nil: none
}

// Capabilities are the rooms of floors 8 and 9 that do one thing each.
type Capabilities struct {
	Alert    *alert.Alerts
	Fixity   *fixity.Checks
	Schedule *schedule.Keeper
	Export   *export.Exports
	Search   *search.Searches
	Delivery *delivery.Keeper
	Disposal *disposal.Keeper
	Catalog  *catalog.Keeper
	Reader   *reader.Readers
	Feed     *feed.Feeds
	Notices  *notices.Teller
}

// Open opens the workspace at root, takes in settings edited in place, and reads
// the settings in force. Close it.
func Open(ctx context.Context, root string, o Options) (_ *Engine, err error) {
	clone := gitstore.IsClone(root)
	if clone {
		o.ReadOnly = true
		if err := gitstore.InstallDriver(ctx, root, cmp.Or(o.Program, "bagpipe"), false); err != nil {
			o.Warn(err.Error())
		}
	}
	e, err := newEngine(root, o)
	if err != nil {
		return nil, err
	}
	if e.Ledger.Clone = clone; clone {
		e.Ledger.Seat.Bar(gitstore.ErrReadOnly)
	}
	if !o.ReadOnly {
		if err := e.Ledger.CheckOwner(); err != nil {
			return nil, err
		}
	}
	if !o.ReadOnly {
		if err := signs(e.Ledger); err != nil {
			return nil, err
		}
	}
	if err := e.Ledger.Open(e.stocked); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Ledger.Store.Close())
		}
	}()
	if !o.ReadOnly {
		if err := e.Ledger.CheckMounted(); err != nil {
			return nil, err
		}
	}
	if err := e.Guard.Open(); err != nil {
		return nil, err
	}
	if err := e.sync(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// newEngine wires the rooms, from the ground up.
func newEngine(root string, o Options) (*Engine, error) {
	l, err := newLedger(root, o)
	if err != nil {
		return nil, err
	}
	e := &Engine{Ledger: l, Settings: settings.New(l, o.Robots), Guard: guard.New(l)}
	e.Folder = folder.New(root, l.Now, func() uint64 { return e.Settings.Current().Settings.Free() })
	e.Control = control.New(l, e.Settings.MarkDirty, e.Settings.Deployed)
	e.Index = index.New(l, e.Settings, e.Control, e.Guard)
	recogniser := recognition.New(l, e.Settings)
	e.Intake = intake.New(l, e.Settings, e.Folder, e.Guard, e.Index, recogniser)
	e.Attempt = attempt.New(attempt.Rooms{Ledger: l, Settings: e.Settings, Folder: e.Folder, Guard: e.Guard, Control: e.Control,
		Index: e.Index, Recognition: recogniser, Robots: o.Robots})
	e.Act = act.New(l, e.Settings, e.Folder, e.Guard, e.Control, e.Index, e.Attempt.Recovery.Recover)
	e.Ask = ask.New(ask.Rooms{Ledger: l, Settings: e.Settings, Folder: e.Folder, Guard: e.Guard, Control: e.Control,
		Index: e.Index, Recognition: recogniser, Intake: e.Intake, Attempt: e.Attempt})
	e.Alert = alert.New(l, e.Settings, e.Control, e.Index, e.Ask)
	e.Feed = feed.New(l)
	e.Notices = notices.New(l, e.Settings, e.Index, e.Ask)
	e.Export = export.New(l, e.Settings)
	e.Export.Past = func(ctx context.Context, v gitstore.View, items []layout.ItemID) export.PastOf {
		return fixity.Past(ctx, l, v, items)
	}
	e.Search = search.New(l)
	e.Delivery = delivery.New(l, e.Settings, e.Folder, e.Attempt.Targets)
	e.Attempt.Premis = func(ctx context.Context, to io.Writer, id layout.ItemID) error {
		return e.Export.Write(ctx, to, export.PREMIS, "", []layout.ItemID{id})
	}
	e.Fixity = fixity.New(l, e.Settings, e.Folder, e.Index, e.Act, e.Attempt.Targets)
	e.Disposal = disposal.New(disposal.Rooms{Ledger: l, Settings: e.Settings, Guard: e.Guard, Index: e.Index,
		Targets: e.Attempt.Targets, Withdraw: e.Delivery.WithdrawAll})
	e.Catalog = catalog.New(l, e.Settings, e.Intake)
	e.Reader = reader.New(l, e.Settings, e.Intake)
	e.Attempt.PlaceMoved, e.Folder.Roots, e.Folder.Away = e.Catalog.Want, e.Catalog.PlaceRoot, e.Catalog.Away
	e.Fixity.Gone, e.Disposal.IsGone = e.Catalog.Gone, e.Catalog.IsGone
	e.Schedule = schedule.New(l, e.Settings, deeds{e}.byName(), deeds{e}.readyOf)
	e.Notices.Others = notices.Others{Disposal: e.Disposal, Search: e.Search, Schedule: e.Schedule}
	e.Guard.Requires = settings.RequiredAt
	e.Settings.OnChange(e.Index.ApplyLimits)
	e.Settings.OnChange(e.Index.CountDeployed)
	e.Control.OnChange(e.Index.Recontrol)
	l.Connect(e.Guard, e.Index.AroundOf,
		e.Guard.Arrived,
		e.Control.NoteControls,
		e.Settings.NoteSettings,
		e.Index.NoteItems,
		e.Attempt.NoteCancels,
		e.Intake.Identities.Note,
		e.Fixity.Note,
	)
	return e, nil
}

// newLedger fills in what the options leave open.
func newLedger(root string, o Options) (*ledger.Ledger, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.ID == "" {
		id, err := layout.NewEngineID(o.Random)
		if err != nil {
			return nil, err
		}
		o.ID = id
	}
	var site state.Site
	name, clone := gitstore.SiteOf(root)
	if site.Name, _ = layout.ParseName(name); site.Name != "" {
		site.Clone = clone
	}
	// Records hold milliseconds: with finer times a record just made would differ
	// from the same one read again.
	now := func() time.Time { return o.Now().UTC().Truncate(time.Millisecond) }
	return ledger.New(ledger.Options{Root: root, ID: o.ID, Host: o.Host, Now: now, Clock: o.Now, Random: o.Random, Version: o.Version,
		Log: o.Log, Warn: o.Warn, Person: o.Person, ReadOnly: o.ReadOnly, Site: site}), nil
}

// signs opens the key by which commits are signed, where they are.
func signs(l *ledger.Ledger) error {
	which, file := gitstore.SigningOf(l.Root)
	if which == "" {
		return nil
	}
	key, err := trust.OpenKey(file)
	if err != nil {
		return fault.New(fault.Refused, fmt.Sprintf("commits are to be signed here: %v", err), fault.Remedy{Verb: fault.SignNothing})
	}
	l.Sign, l.SignAll = key.Sign, which == gitstore.SignAll
	return nil
}

// sync reads the controls in force, then takes in settings edited in place and reads the
// settings in force.
func (e *Engine) sync(ctx context.Context) error {
	v, err := e.Ledger.Store.Tip()
	if err != nil {
		return err
	}
	if err := e.Control.Load(ctx, v); err != nil {
		return err
	}
	return e.Settings.Sync(ctx)
}

// Close gives back what the engine holds; twice is fine.
func (e *Engine) Close() error {
	e.Index.Close()
	if !e.Ledger.ReadOnly {
		e.Guard.SaveChecked()
	}
	e.Attempt.Live.Close()
	e.Attempt.CloseRules()
	e.Search.Close()
	taken, err := e.Ledger.Seat.Close()
	if taken {
		err = errors.Join(err, e.Folder.DropSpares())
		_ = os.Remove(filepath.Join(e.Ledger.Path(layout.ScratchDir), string(e.Ledger.ID))) // left when it is not empty
	}
	return errors.Join(err, e.Attempt.Targets.Close(), e.Ledger.Store.Close())
}

// stocked reports whether the workers have enough claimed work at hand: a commit that
// takes a little longer keeps none of them waiting.
func (e *Engine) stocked() bool {
	pool := e.pool.Load()
	return pool != nil && pool.Stocked()
}

// Root is the workspace's folder.
func (e *Engine) Root() string { return e.Ledger.Root }

// ID is this engine's identifier.
func (e *Engine) ID() layout.EngineID { return e.Ledger.ID }
