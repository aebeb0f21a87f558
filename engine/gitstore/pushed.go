package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// Files are some of the files of a commit.
type Files map[string][]byte

// ReadFile gives a file's content; it is fs.ErrNotExist when there is none.
func (f Files) ReadFile(name string) ([]byte, error) {
	data, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return data, nil
}

// List lists a folder, by name.
func (f Files) List(dir string) (out []Entry, err error) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		rest := name
		if dir != "" {
			var below bool
			if rest, below = strings.CutPrefix(name, dir+"/"); !below {
				continue
			}
		}
		first, _, deeper := strings.Cut(rest, "/")
		if len(out) == 0 || out[len(out)-1].Name != first {
			out = append(out, Entry{Name: first, IsDir: deeper})
		}
	}
	return out, nil
}

// maxPushedFile is how long a file of settings may be, maxPushed how long all together: a
// push of a few kilobytes may name one blob a thousand times.
const (
	maxPushedFile = 8 << 20
	maxPushed     = 64 << 20
)

// pushedEndings are those of files of settings that can be wrong.
var pushedEndings = []string{".yaml", ".geojson"}

// FilesOf reads files and folders of a commit of the workspace at root by the git program,
// which also sees what a push has brought and not landed yet. Of folders it reads settings alone.
func FilesOf(ctx context.Context, root, commit string, paths ...string) (Files, error) {
	list, err := gitSays(ctx, root, nil, append([]string{"ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	var names []string
	var hashes bytes.Buffer
	var sum int64
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		about, name, _ := strings.Cut(line, "\t")
		fields := strings.Fields(about) // mode, type, hash, size
		if len(fields) != 4 || fields[1] != "blob" || !slices.Contains(pushedEndings, path.Ext(name)) && name != layout.WorkspaceFile && !slices.Contains(paths, name) {
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil || size > maxPushedFile {
			return nil, &layout.FileError{File: name, Text: fmt.Sprintf("has more than %d bytes", maxPushedFile)}
		}
		if sum += size; sum > maxPushed {
			return nil, &layout.FileError{File: name, Text: fmt.Sprintf("is one too many: all files of settings have more than %d bytes", maxPushed)}
		}
		names = append(names, name)
		hashes.WriteString(fields[2] + "\n")
	}
	out, err := gitSays(ctx, root, hashes.Bytes(), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	files := Files{}
	for _, name := range names {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(head)) // hash, type, size
		if len(fields) != 3 {
			return nil, fmt.Errorf("git cat-file: %q", head)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size >= len(rest) {
			return nil, fmt.Errorf("git cat-file: %q", head)
		}
		files[name], out = rest[:size], rest[size+1:]
	}
	return files, nil
}

// maxPushedRecord bounds a record of an item. An inventory grows with the item's files, of
// which a million take some 300 MB; the others do not.
const maxPushedRecord = 32 << 20

// LargeRecord finds a record that a push changes, from before on or of all if that is empty,
// and that is larger than any is; "": there is none.
func LargeRecord(ctx context.Context, root, before, commit string) (name string, err error) {
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, commit, "--", layout.ItemsDir}
	if before == "" {
		args = []string{"ls-tree", "-r", "-z", "--full-tree", commit, "--", layout.ItemsDir}
	}
	list, err := gitSays(ctx, root, nil, args...)
	if err != nil {
		return "", err
	}
	records := map[string]string{}
	for fields := strings.Split(string(list), "\x00"); len(fields) > 0; {
		about, changed := strings.CutPrefix(fields[0], ":")
		fields = fields[1:]
		if changed && len(fields) > 0 { // :MODE MODE HASH HASH STATUS, and the name in a field of its own
			about, fields = strings.Fields(about)[3]+"\t"+fields[0], fields[1:]
		}
		if hash, p, is := strings.Cut(about, "\t"); is {
			records[p] = hash[strings.LastIndexByte(hash, ' ')+1:]
		}
	}
	return largeOf(ctx, root, records)
}

// largeOf is LargeRecord of files, each with the name of its blob.
func largeOf(ctx context.Context, root string, files map[string]string) (string, error) {
	var names []string
	var hashes bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if _, rest, ok := layout.ItemOfPath(p); ok && path.Ext(rest) == ".json" && rest != layout.InventoryJSON {
			names = append(names, p)
			hashes.WriteString(files[p] + "\n")
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	sizes, err := gitSays(ctx, root, hashes.Bytes(), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return "", err
	}
	for i, size := range strings.Split(strings.TrimSuffix(string(sizes), "\n"), "\n") { // of one that was removed "… missing"
		if n, err := strconv.ParseInt(size, 10, 64); err == nil && n > maxPushedRecord && i < len(names) {
			return names[i], nil
		}
	}
	return "", nil
}

func gitSays(ctx context.Context, root string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + filepath.Join(root, layout.RepositoryDir)}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_GRAFT_FILE="+os.DevNull)
	var out, wrong bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &wrong
	if err := cmd.Run(); err != nil {
		for len(args) > 2 && args[0] == "-c" { // the program's name comes after
			args = args[2:]
		}
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, gitsReason(wrong.String()))
	}
	return out.Bytes(), nil
}
