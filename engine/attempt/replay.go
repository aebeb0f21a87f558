package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// ReplayOptions name the kept attempt that is run again, and where.
type ReplayOptions struct {
	Attempt string    // N or N-ENGINE; "": the last one kept
	To      string    // an empty folder, or one to be made; "": a new one below the system's temporary folder
	Log     io.Writer // what the robot prints, besides the file; nil: nowhere
}

// Replayed is how a replay went.
type Replayed struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Attempt  string        `json:"attempt"`
	Dir      string        `json:"dir"`
	Log      string        `json:"log"`      // below Dir
	ExitCode int           `json:"exitCode"` // as a program's would be
	Status   string        `json:"status"`   // completed, skipped, failed, deferred
	Kind     string        `json:"kind,omitempty"`
	Message  string        `json:"message,omitempty"`

	Metadata map[string]any    `json:"metadata,omitempty"`
	Children int               `json:"children,omitempty"`
	Outputs  map[string]string `json:"outputs,omitempty"` // below Dir/scratch, and the place in the item
}

// Replay runs a step again on the kept inputs of one of its attempts, outside the
// workflow. The robot reads and writes in a folder of its own:
//
//	DIR/item/      the copies; a robot may write into them without harm
//	DIR/scratch/   outputs, result.json included
//	DIR/store/     for deposits
//	DIR/log
//
// Nothing of the item changes, and no claim is taken. A robot that acts elsewhere, such as
// by sending a message, does so again.
func (a *Attempts) Replay(ctx context.Context, ref ledger.StepRef, o ReplayOptions) (r Replayed, err error) {
	from, kept, err := findKept(a.ledger.Path(layout.ItemDir(ref.Item)), ref, o.Attempt)
	if err != nil {
		return r, err
	}
	if o.To, err = replayFolder(o.To); err != nil {
		return r, err
	}
	c, err := a.replayCall(from, o.To, kept)
	if err != nil {
		return r, fmt.Errorf("prepare the replay in %s: %w", o.To, err)
	}
	log, err := os.Create(filepath.Join(o.To, "log"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	c.Log = io.Writer(log)
	if o.Log != nil {
		c.Log = io.MultiWriter(log, o.Log)
	}
	res, failure := a.performer.Perform(ctx, &state.Step{Name: string(kept.Step), How: state.How{Robot: kept.Robot, Command: kept.Command, Persistent: kept.Persistent, With: kept.With}}, c)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	return replayed(kept, o.To, res, failure), nil
}

func replayed(kept folder.KeptCall, dir string, res steps.Result, failure error) Replayed {
	r := Replayed{Item: kept.Item, Workflow: kept.Workflow, Step: kept.Step, Attempt: kept.Attempt, Dir: dir, Log: "log",
		ExitCode: steps.ExitCode(res, failure), Status: "completed", Message: ledger.Printable(res.Message), Metadata: res.Metadata}
	var later *steps.Later
	switch {
	case errors.As(failure, &later):
		r.Status, r.Message = "deferred", ledger.Printable(later.Error())
	case failure != nil:
		r.Status, r.Kind, r.Message = "failed", string(steps.KindOf(failure)), ledger.Printable(failure.Error())
	case res.Status == steps.Skipped:
		r.Status = "skipped"
	}
	if len(res.Outputs) > 0 {
		r.Outputs = map[string]string{}
	}
	r.Children = len(res.Children)
	for _, out := range res.Outputs {
		r.Outputs[layout.EncodePath(string(out.From))] = layout.EncodePath(string(out.To))
	}
	return r
}

// findKept finds the kept inputs of an attempt, or the last ones, in an item's folder.
func findKept(item string, ref ledger.StepRef, attempt string) (dir string, kept folder.KeptCall, err error) {
	inputs := filepath.Join(item, layout.InputsDir)
	entries, err := os.ReadDir(inputs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", kept, err
	}
	var last layout.AttemptKey
	for _, entry := range entries {
		step, k, ok := folder.SplitKept(entry.Name())
		if !ok || step != ref.Step || attempt != "" && attempt != k.String() && attempt != strconv.Itoa(k.N) || k.Compare(last) < 0 {
			continue
		}
		call, err := folder.ReadKept(filepath.Join(inputs, entry.Name()))
		if err != nil {
			return "", kept, fmt.Errorf("kept inputs %s: %w", entry.Name(), err)
		}
		if base, _ := state.Numbered(call.Workflow); ref.Workflow == "" || ref.Workflow == call.Workflow || ref.Workflow == base {
			dir, kept, last = filepath.Join(inputs, entry.Name()), call, k
		}
	}
	switch {
	case dir != "":
		return dir, kept, nil
	case attempt != "":
		return "", kept, fmt.Errorf("item %s has no kept inputs of attempt %s at step %s", ref.Item.Short(), attempt, ref.Step)
	}
	return "", kept, fmt.Errorf("item %s has no kept inputs of step %s; a step with keepInputs: true keeps them", ref.Item.Short(), ref.Step)
}

// replayFolder gives an empty folder.
func replayFolder(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "bagpipe-replay-")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o777); err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(abs); err != nil || len(entries) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s is not empty; give an empty folder, or one that is not there", layout.EncodePath(dir)))
	}
	return abs, nil
}

// replayCall is the robot's call, on copies of the kept inputs.
func (a *Attempts) replayCall(from, to string, kept folder.KeptCall) (*steps.Call, error) {
	item := filepath.Join(to, "item")
	k, err := layout.ParseAttemptKey(kept.Attempt)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{item, filepath.Join(to, "scratch")} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return nil, err
		}
	}
	if err := folder.CopyFolders(from, item, layout.SourceDir, layout.ContentDir, layout.DerivedDir,
		layout.ManifestJSON, layout.InventoryJSON, layout.ExecutionJSON); err != nil {
		return nil, err
	}
	c := &steps.Call{
		Item: kept.Item, Collection: kept.Collection, Label: kept.Label, Workflow: kept.Workflow, Step: kept.Step, Attempt: k,
		With: kept.With,
		Folders: steps.Folders{Dir: item, Source: filepath.Join(item, layout.SourceDir), Content: folder.ContentOf(item),
			Scratch: filepath.Join(to, "scratch"), Store: filepath.Join(to, "store")},
		Records: steps.Records{SourceKind: kept.SourceKind},
		Means:   steps.Means{Limits: a.settings.Current().Settings.ArchiveLimits(), Slog: a.ledger.Log, Now: a.ledger.Now, Version: a.ledger.Version, Environment: kept.Environment},
	}
	if c.Manifest, err = os.ReadFile(filepath.Join(item, layout.ManifestJSON)); err != nil {
		return nil, err
	}
	m, err := layout.DecodeManifest(c.Manifest)
	if err != nil {
		return nil, err
	}
	c.Objects = a.recognition.ObjectsOf(m)
	if c.Execution, err = os.ReadFile(filepath.Join(item, layout.ExecutionJSON)); err != nil {
		return nil, err
	}
	c.Inventory, err = os.ReadFile(filepath.Join(item, layout.InventoryJSON))
	if errors.Is(err, fs.ErrNotExist) {
		c.Inventory, err = nil, nil
	}
	return c, err
}
