package fixity

import (
	"context"
	"path/filepath"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// besideOf names the files beside the one in a catalog that are what was catalogued together with it.
func besideOf(m layout.Manifest) ([]string, error) {
	if m.Source.Place == nil {
		return nil, nil
	}
	return m.Source.Place.Beside()
}

// besideIn is besideOf of what an item is now: none where a step made a content of its own.
func besideIn(c *Checks, m layout.Manifest) ([]string, error) {
	if !c.folder.InPlace(m) {
		return nil, nil
	}
	return m.Source.Place.Beside()
}

func digestOf(ctx context.Context, path string, beside []string) (inbox.Sum, error) {
	if len(beside) > 0 {
		return inbox.DigestFiles(ctx, filepath.Dir(path), append([]string{filepath.Base(path)}, beside...))
	}
	return inbox.Digest(ctx, path)
}
