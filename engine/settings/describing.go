package settings

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
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

// Signatures is the file of format signatures in force; "" stands for those of this program.
func (d Describing) Signatures(root string) string {
	if d.Formats == "" {
		return ""
	}
	return Below(root, d.Formats)
}

// ViewsDir is where pictures to look at go; "" stands for the items' folders.
func (d Describing) ViewsDir(root string) string {
	if d.Views == "" {
		return ""
	}
	return Below(root, d.Views)
}

var formatsLine = regexp.MustCompile(`(?m)^formats:.*\n?`)

// UseSignatures copies a signature file into the workspace and puts it in force; file ""
// goes back to the signatures of this program. It gives the name of the signatures.
//
// The file is durable before the settings name it; after a crash between the two a file
// stands in formats/ that nothing names, until the same command is run again.
func (so *Source) UseSignatures(ctx context.Context, file string) (string, error) {
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
		if err := disk.MkdirAll(so.ledger.Path(layout.FormatsDir), 0o777); err != nil {
			return "", err
		}
		if err := disk.WriteFile(so.ledger.Path(at), data, 0o666); err != nil {
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
	return r.Name, so.Sync(ctx)
}
