package intake

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
	knownSuffix = ".known"
	knownMagic  = "bagpipe known 2\n"
	knownSize   = 16 // of an entry
)

// readKnown fills k from the newest file of use, and gives its tree; zero: none.
func (in *Intake) readKnown(k *known) gitstore.Hash {
	names, err := filepath.Glob(filepath.Join(in.ledger.Path(layout.IndexDir), "*"+knownSuffix))
	if err != nil {
		return gitstore.Hash{}
	}
	for _, name := range names {
		tree, err := gitstore.ParseHash(strings.TrimSuffix(filepath.Base(name), knownSuffix))
		if err != nil {
			continue
		}
		if there, err := in.ledger.Store.HasTree(tree); err != nil || !there {
			continue
		}
		entries, err := readKnownFile(name)
		if err != nil {
			in.ledger.Log.Debug("an index of what is known is passed over", "file", name, "err", err)
			continue
		}
		k.mu.Lock()
		k.sorted = entries
		k.mu.Unlock()
		return tree
	}
	return gitstore.Hash{}
}

func readKnownFile(name string) ([]knownEntry, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	const head, tail = len(knownMagic) + 8, sha256.Size
	if len(data) < head+tail || string(data[:len(knownMagic)]) != knownMagic {
		return nil, errors.New("it is of another format")
	}
	body, sum := data[:len(data)-tail], data[len(data)-tail:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, errors.New("it is damaged")
	}
	n := binary.BigEndian.Uint64(body[len(knownMagic):])
	if body = body[head:]; uint64(len(body)) != n*knownSize {
		return nil, errors.New("it is cut")
	}
	entries := make([]knownEntry, n)
	for i := range entries {
		at := body[i*knownSize:]
		entries[i] = knownEntry{binary.BigEndian.Uint64(at), binary.BigEndian.Uint64(at[8:])}
	}
	return entries, nil
}

// writeKnown writes the entries for the next start; what goes wrong costs that start
// time, nothing else. Entries of later trees do no harm.
func (in *Intake) writeKnown(k *known, tree gitstore.Hash) {
	if err := in.saveKnown(k, tree); err != nil {
		in.ledger.Log.Warn("the next start will take longer", "err", err)
	}
}

func (in *Intake) saveKnown(k *known, tree gitstore.Hash) (err error) {
	dir := in.ledger.Path(layout.IndexDir)
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*"+knownSuffix))
	if err != nil {
		return err
	}
	name := filepath.Join(dir, tree.String()+knownSuffix)
	tmp := name + "." + string(in.ledger.ID)
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

func (k *known) writeTo(w io.Writer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.extra > 0 {
		k.merge()
	}
	sum := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	buf.WriteString(knownMagic) // errors stay, and Flush gives them
	var b [knownSize]byte
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
