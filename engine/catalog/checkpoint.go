package catalog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a checkpoint is the tree as of one Git tree, whose hash it begins with. Of
// another hash, or damaged, it is worth nothing, and the records are read. It is written when a
// scan has ended well: all its items are registered then.

const (
	stateDir        = layout.StateDir + "/catalogs"
	checkpointMagic = "catalog checkpoint 5\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (k *Keeper) checkpointPath(name layout.Name) string {
	return k.ledger.Path(stateDir + "/" + string(name) + ".checkpoint")
}

// load gives a catalog's tree. complete reports whether all its items are registered.
func (k *Keeper) load(name layout.Name) (t tree, complete bool, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, false, err
	}
	hash, err := treeHash(v, name)
	if err != nil || hash == "" {
		return tree{}, true, err
	}
	if t := readCheckpoint(k.checkpointPath(name), hash); t != nil {
		return t, true, nil
	}
	t, err = readTree(v, name, k.soundNode)
	return t, false, err
}

// soundNode gives a folder's record as it last could be read, for one that a push spoiled. The
// folder is recognised anew, and its record written anew with that.
func (k *Keeper) soundNode(catalog layout.Name, path string, cause error) (*node, error) {
	file := recordDir(catalog, path) + "/" + folderFile
	for c, err := range k.ledger.Store.History(context.Background(), gitstore.HistoryOptions{Path: file}) {
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		v, err := k.ledger.Store.At(c.Hash)
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		if n, err := readNode(v, catalog, path); err == nil && n != nil {
			k.ledger.Warn(fmt.Sprintf("%v; the last sound one, of commit %s, is taken for it", cause, c.Hash.String()[:12]))
			n.rules = ""
			return n, nil
		}
	}
	return nil, cause
}

// treeHash names the committed tree of a catalog; "" where there is none.
func treeHash(v gitstore.View, name layout.Name) (string, error) {
	entries, err := v.List(layout.CatalogsDir + "/" + string(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, e := range entries {
		if e.Name == "tree" && e.IsDir {
			return e.Hash.String(), err
		}
	}
	return "", err
}

// save writes the checkpoint, unless it is as it was.
func (k *Keeper) save(name layout.Name, t tree) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	hash, err := treeHash(v, name)
	if err != nil || hash == "" {
		return err
	}
	if f, err := os.Open(k.checkpointPath(name)); err == nil {
		head := make([]byte, len(checkpointMagic)+len(hash))
		_, err = io.ReadFull(f, head)
		if f.Close() == nil && err == nil && string(head) == checkpointMagic+hash {
			return nil
		}
	}
	tmp := k.checkpointPath(name) + ".tmp"
	if err := disk.MkdirAll(k.ledger.Path(stateDir), 0o777); err != nil {
		return err
	}
	f, err := os.Create(tmp)
	if err == nil {
		err = errors.Join(encodeCheckpoint(f, hash, t), f.Close())
	}
	if err == nil {
		err = os.Rename(tmp, k.checkpointPath(name))
	}
	if err != nil {
		err = fmt.Errorf("write the checkpoint of catalog %s: %w", name, err)
	}
	return err
}

// encodeCheckpoint writes the head, the folders, and the sum of all before.
func encodeCheckpoint(f io.Writer, hash string, t tree) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	w.WriteString(checkpointMagic + hash)
	var b []byte
	for _, n := range t {
		b = n.pack(b[:0])
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := f.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

func packText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (n *node) pack(b []byte) []byte {
	for _, s := range []string{n.path, n.rules, n.state, n.why, n.device} {
		b = packText(b, s)
	}
	b = binary.AppendVarint(b, n.mtime)
	b = binary.AppendUvarint(b, n.inode)
	b = binary.AppendUvarint(b, uint64(n.pages))
	if n.packed.text != "" {
		return n.packed.append(b)
	}
	p := packed{count: len(n.entries), there: n.there(), marked: n.isMarked(), tells: n.tells(), folders: n.hasFolders()}
	var text []byte
	for i := range n.entries {
		text = n.entries[i].pack(text, n.reasons)
	}
	p.text = string(text)
	return p.append(b)
}

func (p packed) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(p.count))
	b = binary.AppendUvarint(b, uint64(p.there))
	b = append(b, byte(b2i(p.marked)|b2i(p.tells)<<1|b2i(p.folders)<<2))
	return packText(b, p.text)
}

func (e *entry) pack(b []byte, reasons map[string]string) []byte {
	flags := byte(e.kind) | byte(e.verdict)<<2
	if e.gone {
		flags |= 1 << 5
	}
	if e.waits {
		flags |= 1 << 6
	}
	if e.replaced {
		flags |= 1 << 7
	}
	b = packText(append(b, flags), e.name)
	b = packText(b, string(e.item))
	if e.hasReason() {
		b = packText(b, reasons[e.name])
	}
	b = binary.AppendVarint(b, e.size)
	b = binary.AppendVarint(b, e.mtime)
	b = binary.AppendVarint(b, e.ctime-e.mtime)
	return binary.AppendUvarint(b, e.inode)
}

// readCheckpoint gives nil for what is not the checkpoint of this hash.
func readCheckpoint(path, hash string) tree {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // read only: nothing can be lost
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	return decodeCheckpoint(f, info.Size(), hash)
}

// decodeCheckpoint reads a checkpoint of size bytes. Names are cut from one text.
func decodeCheckpoint(f io.Reader, size int64, hash string) tree {
	var body strings.Builder
	body.Grow(int(max(0, size-4)))
	sum, tail := crc32.New(castagnoli), make([]byte, 5)
	if _, err := io.CopyBuffer(io.MultiWriter(&body, sum), struct{ io.Reader }{io.LimitReader(f, size-4)}, make([]byte, 256<<10)); err != nil {
		return nil
	}
	if n, err := io.ReadFull(f, tail); n != 4 || !errors.Is(err, io.ErrUnexpectedEOF) || binary.BigEndian.Uint32(tail) != sum.Sum32() {
		return nil
	}
	text, ok := strings.CutPrefix(body.String(), checkpointMagic+hash)
	if !ok {
		return nil
	}
	r := &unpacker{rest: text}
	t := tree{}
	for r.rest != "" && !r.bad {
		n := r.node()
		t[n.path] = n
	}
	if r.bad {
		return nil
	}
	return t
}

func (u *unpacker) node() *node {
	n := &node{path: u.text(), rules: u.text(), state: u.text(), why: u.text(), device: u.text(), mtime: u.signed(), inode: u.number(), pages: int(u.number())}
	n.packed.count, n.packed.there = int(u.number()), int(u.number())
	if u.rest == "" {
		u.bad = true
		return n
	}
	flags := u.rest[0]
	u.rest = u.rest[1:]
	n.packed.marked, n.packed.tells, n.packed.folders = flags&1 != 0, flags&2 != 0, flags&4 != 0
	if n.packed.text = u.text(); n.packed.count < 0 || n.packed.count > len(n.packed.text) {
		u.bad = true
	}
	return n
}
