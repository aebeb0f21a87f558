package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// partSize is how much is sent at once; of a part that is cut off, what came counts.
const partSize = 8 << 20

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// send sends the outputs and children that a robot made, and lists them in its end.
func (e *errand) send(ctx context.Context, scratch string, res steps.Result, end *wire.End) error {
	var tops []string
	for _, o := range res.Outputs {
		tops = append(tops, string(o.From))
	}
	for _, c := range res.Children {
		tops = append(tops, string(c.From))
	}
	seen, left := map[string]bool{}, int64(wire.MostCarried)
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join(scratch, filepath.FromSlash(top)), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(scratch, path)
			if err != nil || seen[rel] {
				return err
			}
			seen[rel] = true
			name := layout.EncodePath(filepath.ToSlash(rel))
			if d.IsDir() {
				end.Folders = append(end.Folders, name)
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if info.Mode().IsRegular() && info.Size() <= left && len(end.Files) < wire.MostFiles {
				data, err := os.ReadFile(path)
				left -= int64(len(data))
				end.Files = append(end.Files, wire.Carried(name, data, info.Mode()&0o100 != 0))
				return err
			}
			f, err := described(path, name)
			if err != nil {
				return err
			}
			end.Files = append(end.Files, f)
			return e.sendFile(ctx, path, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func described(path, name string) (f wire.File, err error) {
	in, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return f, err
	}
	h := sha256.New()
	n, err := io.Copy(h, in)
	return wire.File{Path: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: info.Mode()&0o100 != 0}, err
}

// sendAgain sends files anew that the engine does not have as they are.
func (e *errand) sendAgain(ctx context.Context, names []string) error {
	for _, name := range names {
		rel, err := decoded(name)
		if err != nil {
			return err
		}
		if err := e.part(ctx, name, 0, http.NoBody); err != nil {
			return err
		}
		if err := e.sendFile(ctx, filepath.Join(e.a.scratch, rel), name); err != nil {
			return err
		}
	}
	return nil
}

// sendFile sends a file in parts, from where the engine has it.
func (e *errand) sendFile(ctx context.Context, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	offset, fresh := int64(0), true
	return lasting(ctx, func() (bool, error) {
		if !fresh {
			if offset, err = e.there(ctx, name); err != nil {
				return false, err
			}
		}
		if offset > info.Size() {
			offset = 0
		}
		fresh = false
		n := min(partSize, info.Size()-offset)
		if err := e.part(ctx, name, offset, io.NewSectionReader(f, offset, n)); err != nil {
			return false, err
		}
		fresh, offset = true, offset+n
		return offset >= info.Size(), nil
	})
}

// part sends one part. Only what the engine cannot take at all is an error to give up for.
func (e *errand) part(ctx context.Context, name string, offset int64, body io.Reader) error {
	res, err := e.request(ctx, http.MethodPut, "made?p="+url.QueryEscape(name)+"&offset="+strconv.FormatInt(offset, 10), body, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// there asks how much of a file the engine has.
func (e *errand) there(ctx context.Context, name string) (int64, error) {
	res, err := e.request(ctx, http.MethodHead, "made?p="+url.QueryEscape(name), nil, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return strconv.ParseInt(res.Header.Get("Bagpipe-Size"), 10, 64)
}

// mostLog bounds the bytes of a log that goes with the end.
const mostLog = 16 << 10

// sendLog sends what the robot printed, if it printed anything; with its end where that is little.
func (e *errand) sendLog(ctx context.Context, end *wire.End) error {
	info, err := os.Stat(e.log())
	if err != nil || info.Size() == 0 {
		return nil
	}
	if info.Size() > mostLog {
		return e.sendFile(ctx, e.log(), wire.LogFile)
	}
	end.Log, err = os.ReadFile(e.log())
	return err
}
