package identity

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: .bagpipe/index/TREE.known holds the entries that follow from one
// tree: a line that names the format, the number of entries, the entries in order,
// their SHA-256. It is renamed into its place and not synced; one that is cut, of
// another format, or of a tree that is not in the repository is passed over, and all
// manifests are read.

const (
	fileSuffix = ".known"
	fileMagic  = "bagpipe known 2\n"
	entrySize  = 16 // of an entry
)

// readFile fills k from the newest file of use, and gives its tree; zero: none.
func (x *Index) readFile(k *Keys) gitstore.Hash {
	names, err := filepath.Glob(filepath.Join(x.ledger.Path(layout.IndexDir), "*"+fileSuffix))
	if err != nil {
		return gitstore.Hash{}
	}
	for _, name := range names {
		tree, err := gitstore.ParseHash(strings.TrimSuffix(filepath.Base(name), fileSuffix))
		if err != nil {
			continue
		}
		if there, err := x.ledger.Store.HasTree(tree); err != nil || !there {
			continue
		}
		entries, err := decodeFile(name)
		if err != nil {
			x.ledger.Log.Debug("an index of what is known is passed over", "file", name, "err", err)
			continue
		}
		k.mu.Lock()
		k.sorted = entries
		k.mu.Unlock()
		return tree
	}
	return gitstore.Hash{}
}

func decodeFile(name string) ([]entry, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	const head, tail = len(fileMagic) + 8, sha256.Size
	if len(data) < head+tail || string(data[:len(fileMagic)]) != fileMagic {
		return nil, errors.New("it is of another format")
	}
	body, sum := data[:len(data)-tail], data[len(data)-tail:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, errors.New("it is damaged")
	}
	n := binary.BigEndian.Uint64(body[len(fileMagic):])
	if body = body[head:]; uint64(len(body)) != n*entrySize {
		return nil, errors.New("it is cut")
	}
	entries := make([]entry, n)
	for i := range entries {
		at := body[i*entrySize:]
		entries[i] = entry{binary.BigEndian.Uint64(at), binary.BigEndian.Uint64(at[8:])}
	}
	return entries, nil
}

// writeFile writes the entries for the next start; what goes wrong costs that start
// time, nothing else. Entries of later trees do no harm.
func (x *Index) writeFile(k *Keys, tree gitstore.Hash) {
	if err := x.saveFile(k, tree); err != nil {
		x.ledger.Log.Warn("the next start will take longer", "err", err)
	}
}

func (x *Index) saveFile(k *Keys, tree gitstore.Hash) (err error) {
	dir := x.ledger.Path(layout.IndexDir)
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*"+fileSuffix))
	if err != nil {
		return err
	}
	name := filepath.Join(dir, tree.String()+fileSuffix)
	tmp := name + "." + string(x.ledger.ID)
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	if err = errors.Join(k.writeTo(f), f.Close()); err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write what is known: %w", err), os.Remove(tmp))
	}
	for _, o := range old {
		if o != name {
			err = errors.Join(err, layout.RemoveIfThere(o))
		}
	}
	return err
}

func (k *Keys) writeTo(w io.Writer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.extra > 0 {
		k.merge()
	}
	sum := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	buf.WriteString(fileMagic) // errors stay, and Flush gives them
	var b [entrySize]byte
	binary.BigEndian.PutUint64(b[:8], uint64(len(k.sorted)))
	buf.Write(b[:8])
	for _, entry := range k.sorted {
		binary.BigEndian.PutUint64(b[:8], entry.key)
		binary.BigEndian.PutUint64(b[8:], entry.item)
		buf.Write(b[:])
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}
