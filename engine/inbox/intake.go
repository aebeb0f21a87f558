package inbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

var errNoEngine = errors.New("no engine is named in the inbox's options")

// open makes intake/ID with its journal and an empty source folder. It appears
// by one rename, complete. A crash before leaves .ENGINE.ID.tmp, after it a
// folder that took nothing; Pending removes both. Without sync the caller syncs
// before anything is moved in.
func (b *Box) open(id layout.ItemID, j journal, sync bool) error {
	if b.opt.Engine == "" {
		return errNoEngine
	}
	data, err := encode(j)
	if err != nil {
		return err
	}
	intake := b.path(layout.IntakeDir)
	if err := disk.MkdirAll(intake, dirPerm); err != nil {
		return err
	}
	tmp := filepath.Join(intake, "."+string(b.opt.Engine)+"."+string(id)+".tmp")
	err = errors.Join(os.Mkdir(tmp, dirPerm), os.Mkdir(filepath.Join(tmp, layout.SourceDir), dirPerm))
	if err == nil {
		err = writeNew(filepath.Join(tmp, journalFile), data, sync)
	}
	if err == nil && sync {
		err = disk.SyncDir(tmp)
	}
	if err == nil {
		err = renameNew(tmp, b.intakeOf(id))
	}
	if err != nil {
		return errors.Join(err, discardIntake(tmp))
	}
	if sync {
		return disk.SyncDir(intake)
	}
	return nil
}

func writeNew(path string, data []byte, sync bool) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil || !sync {
		return err
	}
	return f.Sync()
}

// discardIntake removes an intake folder that holds no drop. The source folder
// goes first and only if empty: a drop in it stops everything.
func discardIntake(dir string) error {
	if err := removeIfThere(filepath.Join(dir, layout.SourceDir)); err != nil {
		return err
	}
	if err := disk.RemoveTree(filepath.Join(dir, copyingDir)); err != nil {
		return err
	}
	if err := removeIfThere(filepath.Join(dir, journalFile)); err != nil {
		return err
	}
	if err := removeRewrites(dir); err != nil {
		return err
	}
	return removeIfThere(dir)
}

// removeRewrites removes the temporary files of journals that a kill left.
func removeRewrites(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+journalFile) {
			continue
		}
		if err := removeIfThere(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
