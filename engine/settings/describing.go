package settings

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/formats"
)

// Describing says what the robots work with that look into files. Paths are relative to
// the workspace.
type Describing struct {
	Formats string      `yaml:"formats"` // a file of format signatures; "": those of this program
	Web     WebSettings `yaml:"web"`
	Views   string      `yaml:"views"` // a folder for pictures to look at; "": in the items' folders
}

// ViewsDir is where pictures to look at go; "" stands for the items' folders.
func (d Describing) ViewsDir(root string) string {
	if d.Views == "" {
		return ""
	}
	return Below(root, d.Views)
}

var formatsLine = regexp.MustCompile(`(?m)^formats:.*\n?`)

// Signatures gives the file of format signatures in force; "" stands for those of this program. One below
// formats/ is there as it is committed: a clone has none, and one that was damaged is written anew.
func (so *Source) Signatures() (file string, err error) {
	set := so.Current().Settings.Formats
	if set == "" {
		return "", nil
	}
	file = Below(so.ledger.Root, set)
	at := path.Clean(set)
	if path.Dir(at) != layout.FormatsDir {
		return file, nil
	}
	v, err := so.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	committed, err := v.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) { // put there by hand: whoever loads it tells what is wrong
		return file, nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", at, err)
	}
	if onDisk, err := os.ReadFile(file); err == nil && bytes.Equal(onDisk, committed) || so.ledger.ReadOnly {
		return file, nil
	}
	if err := disk.MkdirAll(so.ledger.Path(layout.FormatsDir), 0o777); err != nil {
		return "", err
	}
	if err := disk.WriteFile(file, committed, 0o666); err != nil {
		return "", fmt.Errorf("write %s as it is committed: %w", at, err)
	}
	return file, nil
}

// UseSignatures commits a signature file and puts it in force; file "" goes back to the signatures
// of this program. It gives the name of the signatures.
//
// The file is committed before the settings name it; after a crash between the two a file
// stands in formats/ that nothing names, until the same command is run again.
func UseSignatures(ctx context.Context, so *Source, file string) (string, error) {
	r, err := formats.Load(file)
	if err != nil {
		return "", fault.New(fault.Invalid, err.Error())
	}
	line := ""
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		at := fmt.Sprintf("%s/%x.sig", layout.FormatsDir, sum[:8])
		if err := so.PutSetting(ctx, at, nil, data, "format signatures as"); err != nil {
			return "", fmt.Errorf("keep %s: %w", filepath.Base(file), err)
		}
		line = "formats: " + at + "\n"
	}
	v, err := so.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	was, err := v.ReadFile(layout.SettingsFile)
	if err != nil {
		return "", err
	}
	text := string(was)
	if at := formatsLine.FindStringIndex(text); at != nil {
		text = text[:at[0]] + line + text[at[1]:]
	} else if line != "" {
		text = strings.TrimRight(text, "\n") + "\n\n" + line
	}
	if now, err := ParseSettings(layout.SettingsFile, []byte(text)); err != nil || (now.Formats == "") != (line == "") {
		return "", errors.Join(err, fmt.Errorf("%s: formats: is not written on a line of its own; edit it by hand", layout.SettingsFile))
	}
	if err := so.PutSetting(ctx, layout.SettingsFile, was, []byte(text), "format signatures in"); err != nil {
		return "", err
	}
	if err := so.Sync(ctx); err != nil {
		return "", err
	}
	_, err = so.Signatures()
	return r.Name, err
}
