package reader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/bags/fetch"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// fetch gets what is behind a line's URL, which the settings must allow, as the one file of
// a bag: so its name, size and digest are held to the same rules as those of bags. clear
// removes what is left of it.
func (rs *Readers) fetch(ctx context.Context, h *handed) (file string, clear func(), err error) {
	set := rs.settings.Current().Settings
	name := "content"
	if u, err := url.Parse(h.URL); err == nil {
		if base := path.Base(u.Path); base != "." && base != "/" && base != ".." && !strings.HasPrefix(base, ".") {
			name = base
		}
	}
	top := rs.ledger.Path(layout.FetchedDir)
	if err := errors.Join(os.MkdirAll(top, 0o750), rs.sweep(top)); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(top, "reader-")
	if err != nil {
		return "", nil, err
	}
	clear = func() { _ = disk.RemoveTree(dir) } // what stays is below the caches
	member := "data/" + layout.EncodePath(name)
	for tag, text := range map[string]string{
		"bagit.txt":           "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
		"manifest-sha256.txt": strings.TrimPrefix(h.Digest, "sha256:") + "  " + member + "\n",
		"fetch.txt":           h.URL + " - " + member + "\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, tag), []byte(text), 0o666))
	}
	if err = errors.Join(err, os.Mkdir(filepath.Join(dir, "data"), 0o777)); err != nil {
		clear()
		return "", nil, err
	}
	got, err := fetch.Complete(ctx, dir, fetch.Options{Allowed: set.Allowed(rs.ledger.Root), Limits: set.ArchiveLimits(), Free: int64(min(set.Free(), math.MaxInt64))})
	if err == nil && len(got.Failed) > 0 {
		err = fmt.Errorf("%s: %s", got.Failed[0].URL, got.Failed[0].Text)
	}
	if err != nil {
		clear()
		return "", nil, err
	}
	return filepath.Join(dir, "data", name), clear, nil
}

// sweep removes what a kill left; no fetch takes longer.
func (rs *Readers) sweep(top string) error {
	const left = 48 * time.Hour
	entries, err := os.ReadDir(top)
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr == nil && rs.ledger.Clock().Sub(info.ModTime()) > left {
			err = errors.Join(err, disk.RemoveTree(filepath.Join(top, e.Name())))
		}
	}
	return err
}
