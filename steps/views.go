package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/decoder"
	"bagpipe/steps/describe"
	"bagpipe/steps/views"

	"golang.org/x/sys/unix"
)

const (
	workViews = "views"
	viewTries = 5 // files that are tried until one can be drawn
)

// drawViews makes thumb.jpg and browse.jpg of the first file that can be drawn: a preview that
// came along, the largest picture with a place, vectors, pictures, PDF, video.
func drawViews(ctx context.Context, c *Call) (Result, error) {
	tree, err := object(ctx, c)
	if err != nil {
		return Result{}, failure(err)
	}
	if err := tree.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	w := decoder.New(decoder.Options{Work: workViews, Memory: c.Limits.Memory})
	defer w.Close()
	tried := 0
	for _, f := range drawable(tree) {
		if tried == viewTries {
			break
		}
		answer, err := drawFile(ctx, w, c, tree, f)
		var refused *decoder.Refused
		switch {
		case errors.As(err, &refused):
			tried++
			c.logf("warning: %s: %s", layout.EncodePath(f.Path), refused.Reason)
			continue
		case err != nil:
			return Result{}, fmt.Errorf("draw %s: %w", layout.EncodePath(f.Path), err)
		}
		for _, text := range answer.Warnings {
			c.logf("warning: %s: %s", layout.EncodePath(f.Path), text)
		}
		return c.putViews(answer, f.Path)
	}
	if tried > 0 {
		return withoutViews(c, fmt.Sprintf("none of %s can be drawn; the log says why", layout.Count(int64(tried), "file")))
	}
	return withoutViews(c, "not applicable: no file is of a kind that is drawn")
}

const thumbName, browseName = "thumb.jpg", "browse.jpg"

// viewsDir is the item's folder below the folder for views.
func viewsDir(c *Call) string {
	return filepath.Join(c.Views, filepath.FromSlash(strings.TrimPrefix(layout.ItemDir(c.Item), layout.ItemsDir+"/")))
}

// withoutViews ends a step that drew nothing. Pictures that are there are of what the content was before: they go.
func withoutViews(c *Call, message string) (Result, error) {
	if c.Views != "" {
		for _, name := range []string{thumbName, browseName} {
			if err := os.Remove(filepath.Join(viewsDir(c), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Result{}, failure(err)
			}
		}
	}
	return Result{Status: Skipped, Message: message, Remove: oldViews(c)}, nil
}

// derivedBy is where the step's outputs stand in the item.
func derivedBy(c *Call) layout.RelPath {
	return layout.RelPath(layout.DerivedDir + "/" + string(c.Step))
}

// oldViews are the pictures in the item that the step made before, if any.
func oldViews(c *Call) []layout.RelPath {
	if _, err := os.Lstat(filepath.Join(c.Dir, filepath.FromSlash(string(derivedBy(c))))); err != nil {
		return nil
	}
	return []layout.RelPath{derivedBy(c)}
}

// putViews publishes the two pictures: in derived/STEP, or below the folder for views.
func (c *Call) putViews(a *views.Answer, of string) (Result, error) {
	res := Result{Message: fmt.Sprintf("of %s: %s", layout.EncodePath(of), layout.Count(int64(len(a.Browse)+len(a.Thumb)), "byte"))}
	pictures := map[string][]byte{thumbName: a.Thumb, browseName: a.Browse}
	dir := filepath.Join(c.Scratch, "views")
	write := os.WriteFile
	mkdir := os.Mkdir
	if c.Views != "" {
		dir = viewsDir(c)
		mkdir, write = disk.MkdirAll, disk.WriteFile
		res.Message += "; in " + dir
		res.Remove = oldViews(c)
	} else {
		res.Outputs = []Output{{From: "views", To: derivedBy(c)}}
	}
	if err := mkdir(dir, 0o755); err != nil {
		return Result{}, failure(err)
	}
	for name, data := range pictures {
		if err := write(filepath.Join(dir, name), data, 0o644); err != nil {
			return Result{}, failure(err)
		}
	}
	return res, nil
}

// drawable lists what may be drawn, the best first.
func drawable(tree *files.Tree) []files.Entry {
	rank := func(e files.Entry) int {
		name := strings.ToLower(filepath.Base(e.Path))
		kind := describe.KindOf(name)
		if kind == describe.Image && describe.IsPreview(strings.TrimSuffix(name, filepath.Ext(name))) {
			return 0
		}
		return 1 + slices.Index([]string{describe.Raster, describe.Vector, describe.Image, describe.Document, describe.Video}, kind)
	}
	var all []files.Entry
	for _, e := range tree.Files {
		if rank(e) > 0 || views.Draws(e.Path) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b files.Entry) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -cmp.Compare(a.Size, b.Size))
	})
	return all
}

// drawFile draws one file; a PDF and a video by a program, where it is there.
func drawFile(ctx context.Context, w *decoder.Worker, c *Call, tree *files.Tree, f files.Entry) (*views.Answer, error) {
	a := &views.Answer{}
	q := views.Request{Path: layout.EncodePath(tree.At(f.Path)), Name: filepath.Base(f.Path)}
	if prj, ok := sideCars(tree, []files.Entry{f})[f.Path][".prj"]; ok {
		q.Prj = layout.EncodePath(tree.At(prj))
	}
	if !views.Draws(f.Path) {
		page, err := c.byProgram(ctx, tree.At(f.Path), f.Path)
		if err != nil {
			return nil, err
		}
		q = views.Request{Path: layout.EncodePath(page), Name: filepath.Base(page)}
	}
	return a, w.Ask(ctx, q, a)
}

const (
	programTime   = 2 * time.Minute
	programMemory = 2 << 30
)

// byProgram has a picture made of a PDF's first page or of a video.
func (c *Call) byProgram(ctx context.Context, path, name string) (string, error) {
	out := filepath.Join(c.Scratch, "page")
	args := []string{"pdftoppm", "-jpeg", "-singlefile", "-f", "1", "-l", "1", "-scale-to", fmt.Sprint(views.Browse), path, out}
	if describe.KindOf(name) == describe.Video {
		args = []string{"ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file", "-i", path, "-frames:v", "1", "-vf", "thumbnail=50", "-y", out + ".jpg"}
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return "", &decoder.Refused{Reason: "the program " + args[0] + " is not there"}
	}
	limited, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Dir = c.Scratch
	cmd.WaitDelay = time.Second
	said := &lastLine{to: io.Discard}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	// Its first instructions run without the limit; those read no file.
	for what, most := range map[int]uint64{unix.RLIMIT_AS: programMemory, unix.RLIMIT_FSIZE: 256 << 20, unix.RLIMIT_CPU: uint64(programTime / time.Second)} {
		_ = unix.Prlimit(cmd.Process.Pid, what, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &decoder.Refused{Reason: fmt.Sprintf("%s: %v: %s", args[0], err, said.String())}
	}
	return out + ".jpg", nil
}
