package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// The rules are: what is dropped after settings were committed goes by them, whoever
// committed them: this engine while it takes in an edit, another command, or a push.
// So a scan that found something to act on counts only if the settings committed by
// its end are those in force; else they are read, and the inbox is scanned again.

// settingsMark tells the settings of one tip from those of another.
func settingsMark(v gitstore.View) (string, error) {
	entries, err := v.List("")
	if err != nil {
		return "", fmt.Errorf("look for settings: %w", err)
	}
	var mark strings.Builder
	for _, entry := range entries {
		switch entry.Name {
		case layout.SettingsFile, layout.WorkflowsDir, layout.RulesDir, layout.QueuesDir, layout.SearchesDir, layout.WordsDir, layout.PlacesDir:
			fmt.Fprintf(&mark, "%s %s\n", entry.Name, entry.Hash)
		case layout.SchedulesDir, layout.CatalogsDir: // what stands below them changes with every firing and scan
			files, err := v.List(entry.Name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a pushed file in its place is no folder
				return "", fmt.Errorf("look for settings: %w", err)
			}
			for _, f := range files {
				if !f.IsDir {
					fmt.Fprintf(&mark, "%s/%s %s\n", entry.Name, f.Name, f.Hash)
				}
			}
		}
	}
	return mark.String(), nil
}

// CatchUp brings what is committed into force, and tells whether there was anything.
func (so *Source) CatchUp(ctx context.Context) (changed bool, err error) {
	v, err := so.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	mark, err := settingsMark(v)
	if err != nil || mark == so.Current().mark {
		return false, err
	}
	return true, so.Sync(ctx)
}
