package upload

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/tus/tusd/v2/pkg/handler"
)

// store is where tusd lays bytes: a part is named COLLECTION~SET~PART.
type store struct{ u *Uploads }

// find gives the set of a part, and the part's name in it.
func (u *Uploads) find(ctx context.Context, id string) (s set, name string, err error) {
	parts := strings.Split(id, "~")
	if len(parts) != 3 || !setName.MatchString(parts[1]) || !setName.MatchString(parts[2]) {
		return s, "", handler.ErrNotFound
	}
	collection, err := layout.ParseName(parts[0])
	if err != nil || !desk.Who(ctx).Reaches(string(collection)) {
		return s, "", handler.ErrNotFound
	}
	// Another account's set of the same name is another.
	digest := sha256.Sum256([]byte(parts[1] + "\x00" + desk.Who(ctx).Email))
	return u.set(collection, hex.EncodeToString(digest[:8])), parts[2], nil
}

// NewUpload makes a part. One that is not whole begins anew: whoever announced it did not get
// the answer. One that is whole is refused, but for the same call by its key.
func (st store) NewUpload(ctx context.Context, info handler.FileInfo) (handler.Upload, error) {
	s, name, err := st.u.find(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	st.u.mu.Lock()
	defer st.u.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, problem(err)
	}
	full := info.ID
	info.ID = name
	p := &part{st.u, s, full, info}
	switch there, err := s.part(name); {
	case errors.Is(err, handler.ErrNotFound):
	case err != nil:
		return nil, problem(err)
	case there.Offset == there.Size && (there.Size > 0 || p.moved()) && info.MetaData[keyed] != "" && maps.Equal(there.MetaData, info.MetaData):
		p.info = there
		return p, nil
	case there.Offset == there.Size && (there.Size > 0 || p.moved()):
		return nil, problem(fault.New(fault.Refused, fmt.Sprintf("%s is there already, whole", info.MetaData["path"])))
	}
	if err := p.remove(); err != nil { // what still comes for it goes nowhere
		return nil, problem(err)
	}
	data, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	bytes, err := os.OpenFile(p.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o660)
	if err != nil {
		return nil, err
	}
	return p, errors.Join(bytes.Close(), disk.WriteFile(p.path()+infoEnd, data, 0o660))
}

// GetUpload finds a part that the account announced.
func (st store) GetUpload(ctx context.Context, id string) (handler.Upload, error) {
	s, name, err := st.u.find(ctx, id)
	if err != nil {
		return nil, err
	}
	info, err := s.part(name)
	return &part{st.u, s, id, info}, err
}

// AsTerminatableUpload is the part.
func (store) AsTerminatableUpload(u handler.Upload) handler.TerminatableUpload { return u.(*part) }

// part is one file on its way.
type part struct {
	u    *Uploads
	set  set
	id   string // as clients name it
	info handler.FileInfo
}

func (p *part) path() string { return filepath.Join(p.set.dir, partsDir, p.info.ID) }

// moved reports whether the bytes of a part are in the drop.
func (p *part) moved() bool {
	_, err := os.Lstat(p.path())
	return err != nil
}

// remove takes a part away, its description first: one without bytes is a part that was moved
// to the drop.
func (p *part) remove() error {
	if err := disk.RemoveTree(p.path() + infoEnd); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(filepath.Dir(p.path())), disk.RemoveTree(p.path()))
}

// GetInfo tells how far a part is.
func (p *part) GetInfo(context.Context) (handler.FileInfo, error) {
	info := p.info
	info.ID = p.id
	return info, nil
}

// WriteChunk appends bytes, and syncs them: what is acknowledged need not be sent again. Bytes
// whose checksum is wrong are taken off again.
func (p *part) WriteChunk(ctx context.Context, offset int64, src io.Reader) (n int64, err error) {
	f, err := os.OpenFile(p.path(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	want, _ := ctx.Value(sumKey{}).(sum)
	if want.of == nil {
		n, err = disk.Behind(f, offset, src)
	} else {
		n, err = disk.Behind(f, offset, io.TeeReader(src, want.of))
		if !bytes.Equal(want.of.Sum(nil), want.is) {
			const mismatch = 460 // of the checksum extension
			return 0, errors.Join(handler.NewError("ERR_CHECKSUM_MISMATCH", "the checksum is another", mismatch), f.Truncate(offset))
		}
	}
	p.info.Offset = offset + n
	return n, errors.Join(err, f.Sync())
}

// GetReader refuses: what was sent is read nowhere here.
func (p *part) GetReader(context.Context) (io.ReadCloser, error) { return nil, handler.ErrNotFound }

// FinishUpload has nothing to do: finished publishes.
func (p *part) FinishUpload(context.Context) error { return nil }

// Terminate removes a part, and its set when it was the last.
func (p *part) Terminate(context.Context) error {
	p.u.mu.Lock()
	defer p.u.mu.Unlock()
	delete(p.u.whole, p.set.dir)
	err := p.remove()
	if len(p.set.names()) == 0 {
		err = errors.Join(err, os.RemoveAll(p.set.dir))
	}
	return err
}

type sumKey struct{}

// sum is what bytes must add up to.
type sum struct {
	of hash.Hash // nil: there is none
	is []byte
}

const algorithms = "sha1,sha256"

// sumOf reads Upload-Checksum: an algorithm, and the sum in base64.
func sumOf(header string) (s sum, err error) {
	if header == "" {
		return s, nil
	}
	algorithm, value, _ := strings.Cut(header, " ")
	switch algorithm {
	case "sha1":
		s.of = sha1.New()
	case "sha256":
		s.of = sha256.New()
	default:
		return s, fmt.Errorf("Upload-Checksum %q: expected one of %s", header, algorithms)
	}
	s.is, err = base64.StdEncoding.DecodeString(value)
	return s, err
}
