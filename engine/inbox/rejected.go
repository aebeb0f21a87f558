package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/layout"
)

// Rejection is a drop that was set aside and is still there.
type Rejection struct {
	Drop   string      `json:"drop"` // COLLECTION/NAME, as it is called in rejected/, percent-encoded
	Batch  layout.Name `json:"batch,omitempty"`
	Rule   string      `json:"rule,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Time   time.Time   `json:"time,omitzero"`
	Where  string      `json:"where"` // below the workspace, or absolute; percent-encoded
}

// Rejections lists them, by collection and name. A reason whose drop was taken away
// counts for nothing; a drop without a reason is listed without one.
func (b *Box) Rejections() ([]Rejection, error) {
	found := []Rejection{}
	collections, err := os.ReadDir(b.path(layout.RejectedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("list rejected drops: %w", err)
	}
	for _, c := range collections {
		if !c.IsDir() {
			continue
		}
		entries, err := os.ReadDir(b.path(layout.RejectedDir, c.Name()))
		if err != nil {
			return found, fmt.Errorf("list rejected drops: %w", err)
		}
		found = append(found, b.rejectionsOf(c.Name(), entries)...)
	}
	return found, nil
}

func (b *Box) rejectionsOf(collection string, entries []fs.DirEntry) (found []Rejection) {
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	dir := b.path(layout.RejectedDir, collection)
	for _, e := range entries {
		name, isReason := strings.CutSuffix(e.Name(), reasonSuffix)
		switch {
		case there[e.Name()+reasonSuffix] || strings.HasPrefix(e.Name(), "."):
			// Its reason tells of it.
		case !isReason:
			found = append(found, Rejection{Drop: layout.EncodePath(collection + "/" + name), Where: b.shorten(filepath.Join(dir, name))})
		default:
			r := b.readReason(filepath.Join(dir, e.Name()))
			if r.Where == "" && there[name] {
				r.Where = b.shorten(filepath.Join(dir, name))
			}
			if at, err := b.lengthen(r.Where); err != nil || at == "" || !exists(at) {
				continue
			}
			found = append(found, Rejection{Drop: layout.EncodePath(collection + "/" + name), Batch: r.Batch, Rule: r.Rule, Reason: r.Reason, Time: r.Time, Where: r.Where})
		}
	}
	return found
}

// readReason reads what it can: a reason that a person changed hides no drop.
func (b *Box) readReason(path string) (r reasonFile) {
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return reasonFile{}
	}
	return r
}
