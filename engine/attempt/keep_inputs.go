package attempt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/folder"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// keepInputs saves what the robot is about to be given, if the step asks for it.
func keepInputs(plan *state.Step, c *steps.Call) error {
	if !plan.KeepInputs {
		return nil
	}
	inputs := filepath.Join(c.Dir, layout.InputsDir)
	name := string(c.Step) + "." + c.Attempt.String()
	if err := disk.MkdirAll(inputs, 0o777); err != nil {
		return fmt.Errorf("keep the step's inputs: %w", err)
	}
	if err := folder.ForgetHalfKept(inputs, c.Step); err != nil {
		return fmt.Errorf("keep the step's inputs: %w", err)
	}
	tmp := filepath.Join(inputs, "."+name+".tmp")
	err := fillInputs(tmp, plan, c)
	if err == nil {
		err = disk.SyncTree(tmp)
	}
	if err == nil {
		err = disk.Rename(tmp, filepath.Join(inputs, name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the step's inputs: %w", err), os.RemoveAll(tmp))
	}
	return nil
}

func fillInputs(dir string, plan *state.Step, c *steps.Call) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	call, err := layout.EncodeJSON(folder.KeptCall{
		Schema: folder.CallSchema, Item: c.Item, Collection: c.Collection, Label: c.Label, Workflow: c.Workflow, Step: c.Step, Attempt: c.Attempt.String(),
		Robot: plan.Robot, Command: plan.Command, Persistent: plan.Persistent, With: c.With, SourceKind: c.SourceKind, Environment: steps.Environment(nil, plan.Env),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, folder.CallJSON), call, 0o600); err != nil {
		return err
	}
	for name, data := range map[string][]byte{layout.ManifestJSON: c.Manifest, layout.InventoryJSON: c.Inventory, layout.ExecutionJSON: c.Execution} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	if c.Place == "" {
		return folder.CopyFolders(c.Dir, dir, layout.SourceDir, layout.ContentDir, layout.DerivedDir)
	}
	if err := folder.CopyFolders(c.Dir, dir, layout.DerivedDir); err != nil || c.Content != c.Place && len(c.Beside) == 0 {
		return errors.Join(err, folder.CopyFolders(filepath.Dir(c.Content), dir, layout.ContentDir)) // made by a step, or what was packed
	}
	source := filepath.Join(dir, layout.SourceDir)
	if err := os.Mkdir(source, 0o777); err != nil {
		return err
	}
	if len(c.Beside) > 0 {
		if source = filepath.Join(source, filepath.Base(c.Content)); c.Content == c.Place {
			source = filepath.Join(dir, layout.SourceDir) // the robot has no folder of its own
		} else if err := os.Mkdir(source, 0o777); err != nil {
			return err
		}
	}
	return folder.CopyFolders(filepath.Dir(c.Place), source, append(c.Beside, filepath.Base(c.Place))...)
}
