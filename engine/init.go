package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/templates"
)

// Init makes a workspace in dir: the folders, the bare repository and its first
// commit, which holds the settings as shipped. dir may be there, but not be a
// workspace or anybody's repository. It may be called again after a crash: what
// is missing is made.
func Init(ctx context.Context, dir string, o Options) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if dir == "" {
		return errors.New("no folder given")
	}
	files, err := shipped()
	if err != nil {
		return err
	}
	if err := checkFree(root, files); err != nil {
		return err
	}
	if err := layOut(root, files); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("no folder can be made there: %w; choose another, or make it first as an account that may", err)
		}
		return fmt.Errorf("make workspace %s: %w", root, err)
	}
	e, err := newEngine(root, o)
	if err != nil {
		return err
	}
	if err := addMark(files, e.Ledger.Random); err != nil {
		return err
	}
	files[".gitattributes"] = []byte(attributes)
	who := e.Ledger.ByPerson()
	// The repository comes last: only with it is the folder a workspace.
	err = gitstore.Init(ctx, root, e.Ledger.StoreOptions(nil), files,
		ledger.Message("init: new workspace", "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}}), who.Author)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is a workspace already", root)
	}
	if err == nil {
		err = installHooks(filepath.Join(root, layout.RepositoryDir), o.Program)
	}
	if err != nil {
		return fmt.Errorf("make workspace %s: %w", root, err)
	}
	return nil
}

// checkFree refuses a place that a workspace with these files cannot be made in.
func checkFree(root string, files map[string][]byte) error {
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file", root)
	}
	if outer, ok := enclosing(filepath.Dir(root)); ok {
		return fmt.Errorf("%s lies in the workspace %s", root, outer)
	}
	// A repository beside the settings is a workspace, or one whose making was cut
	// short: the store tells, and completes it.
	_, noRepository := os.Lstat(filepath.Join(root, layout.RepositoryDir))
	_, noSettings := os.Lstat(filepath.Join(root, layout.SettingsFile))
	if noRepository == nil && noSettings != nil {
		return fmt.Errorf("%s has a repository that is not Bagpipe's; a workspace needs a folder of its own", root)
	}
	if noRepository == nil && gitstore.HasCommits(root) {
		return fmt.Errorf("%s is a workspace already", root)
	}
	return checkEmptyEnough(root, files)
}

// layOut makes all of a workspace but its repository.
func layOut(root string, files map[string][]byte) error {
	// What was taken in is for this account and its group: producers reach inbox/ alone.
	closed := []string{layout.ItemsDir, layout.IntakeDir, layout.RejectedDir, layout.StateDir}
	for _, d := range append(closed, layout.InboxDir+"/default", layout.WorkflowsDir, layout.RulesDir) {
		perm := fs.FileMode(0o777)
		if slices.Contains(closed, d) {
			perm = 0o750
		}
		err := disk.MkdirAll(root, 0o777)
		if err == nil {
			err = disk.MkdirAll(filepath.Join(root, d), perm)
		}
		if err != nil {
			return err
		}
	}
	for p, data := range files {
		if err := disk.WriteFile(filepath.Join(root, p), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// addMark adds the workspace's mark to the files of its first commit.
func addMark(files map[string][]byte, random io.Reader) error {
	mark, err := layout.NewMark(random)
	if err != nil {
		return err
	}
	files[layout.WorkspaceFile], err = layout.Workspace{Mark: mark}.Encode()
	return err
}

// attributes have git join records in a clone by the driver that a clone registers.
const attributes = `# In a clone, records are joined by the merge driver that Bagpipe registers.
/items/**/*.json merge=bagpipe
/batches/*.json merge=bagpipe
/controls/*.json merge=bagpipe
/workflows/pinned/*.yaml merge=bagpipe
`

// shipped are the files a new workspace is committed with.
func shipped() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(templates.Workspace, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[p], err = templates.Workspace.ReadFile(p)
		return err
	})
	return files, err
}

// enclosing finds a workspace in or above dir, which need not be there.
func enclosing(dir string) (string, bool) {
	for d := dir; ; d = filepath.Dir(d) {
		if isWorkspace(d) {
			return d, true
		}
		if d == filepath.Dir(d) {
			return "", false
		}
	}
}

// checkEmptyEnough refuses a folder that holds anything but what an earlier Init
// that was cut short made there.
func checkEmptyEnough(root string, files map[string][]byte) error {
	ours := []string{layout.SettingsFile, layout.WorkflowsDir, layout.RulesDir, layout.QueuesDir, layout.SchedulesDir, layout.CatalogsDir, layout.ItemsDir, layout.InboxDir,
		layout.IntakeDir, layout.RejectedDir, layout.StateDir, layout.RepositoryDir}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains(ours, entry.Name()) && !strings.HasPrefix(entry.Name(), ".") {
			return fmt.Errorf("%s is not empty: it holds %s; a workspace needs a folder of its own", root, layout.EncodePath(entry.Name()))
		}
	}
	for p, data := range files {
		old, err := os.ReadFile(filepath.Join(root, p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || string(old) != string(data) {
			return fmt.Errorf("%s is there already; a workspace needs a folder of its own", filepath.Join(root, p))
		}
	}
	return nil
}
