package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// warming has robots ready before the first step.
type warming struct{ *Worker }

var errDrained = errors.New("drained before the engine answered")

// begin has all ready for the first step. Drained meanwhile it ends at once: nothing is at work.
func (w warming) begin(ctx context.Context, drain <-chan struct{}) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := make(chan struct{})
	defer close(begun)
	go func() {
		select {
		case <-drain:
			stop(errDrained)
		case <-begun:
		}
	}()
	err := w.warmUp(ctx)
	if err == nil {
		err = w.hello(ctx)
	}
	if err != nil && context.Cause(ctx) == errDrained {
		return errDrained
	}
	return err
}

// warmUp runs what the programs want before their first step, and kept inputs through the robots.
func (w warming) warmUp(ctx context.Context) error {
	for _, r := range w.o.Config.Robots {
		if r.WarmUp != nil {
			scratch, err := os.MkdirTemp(w.attempts(), "warmup-")
			if err != nil {
				return err
			}
			err = steps.WarmUpCommand(ctx, r.WarmUp, steps.Environment(nil, r.Env), layout.Name(r.name()), scratch)
			if err := errors.Join(err, os.RemoveAll(scratch)); err != nil {
				return fmt.Errorf("warm robot %s up: %w", r.name(), err)
			}
		}
		for _, inputs := range r.WarmUpWith {
			if err := w.warmUpWith(ctx, r, inputs); err != nil {
				return fmt.Errorf("warm robot %s up with %s: %w", r.name(), inputs, err)
			}
		}
	}
	return nil
}

// warmUpWith runs one kept input through a robot. What it makes is thrown away; that it fails as the content
// is not well is no matter.
func (w warming) warmUpWith(ctx context.Context, r Robot, inputs string) (err error) {
	dir, err := os.MkdirTemp(w.attempts(), "warmup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveTree(dir)) }()
	data, err := os.ReadFile(filepath.Join(inputs, keptCall))
	if err != nil {
		return err
	}
	var kept struct {
		Item       layout.ItemID
		Collection layout.Name
		Label      string
		Workflow   string
		Step       layout.Name
		Attempt    string
		With       map[string]any
		SourceKind string
		Command    []string
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	item, scratch := filepath.Join(dir, "item"), filepath.Join(dir, "scratch")
	if err := errors.Join(os.CopyFS(item, os.DirFS(inputs)), os.Mkdir(scratch, 0o700)); err != nil {
		return err
	}
	content := filepath.Join(item, layout.ContentDir)
	if _, err := os.Stat(content); err != nil {
		content = filepath.Join(item, layout.SourceDir)
	}
	if entries, err := os.ReadDir(content); err == nil && len(entries) == 1 {
		content = filepath.Join(content, entries[0].Name())
	}
	key, err := layout.ParseAttemptKey(kept.Attempt)
	if err != nil {
		return err
	}
	c := &steps.Call{Item: kept.Item, Collection: kept.Collection, Label: kept.Label, Workflow: kept.Workflow, Step: kept.Step, Attempt: key, With: kept.With,
		Folders: steps.Folders{Dir: item, Scratch: scratch, Source: filepath.Join(item, layout.SourceDir), Content: content},
		Records: steps.Records{SourceKind: kept.SourceKind},
		Means:   steps.Means{Slog: w.o.Log, Now: w.o.Now, Version: w.o.Build}}
	for name, to := range map[string]*[]byte{layout.ManifestJSON: &c.Manifest, layout.InventoryJSON: &c.Inventory, layout.ExecutionJSON: &c.Execution} {
		if data, err := os.ReadFile(filepath.Join(item, name)); err == nil {
			*to = data
		}
	}
	call := wire.Call{Robot: layout.Name(r.name())}
	if len(kept.Command) > 0 {
		call.Arguments = kept.Command[1:]
	}
	e := &errand{w: w.Worker, dir: dir}
	_, failure := e.run(ctx, call, c)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if broken(failure) {
		return failure
	}
	return nil
}

// keptCall is the file of kept inputs that says what the robot was given.
const keptCall = "call.json"
