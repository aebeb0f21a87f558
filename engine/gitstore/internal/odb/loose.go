package odb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"bagpipe/layout/disk"

	"github.com/klauspost/compress/zlib"
)

const maxLooseHeader = 32

func (db *DB) loosePath(h Hash) string {
	s := h.String()
	return filepath.Join(db.dir, s[:2], s[2:])
}

// readLoose reads a file that holds one object: deflated "TYPE SIZE NUL BYTES".
func readLoose(path string) (t Type, data []byte, err error) {
	f, err := disk.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", errCorrupt, path, err)
	}
	r := bufio.NewReader(z)
	head, err := r.ReadString(0)
	if err != nil || len(head) > maxLooseHeader {
		return 0, nil, fmt.Errorf("%w: %s: header", errCorrupt, path)
	}
	name, digits, _ := strings.Cut(strings.TrimSuffix(head, "\x00"), " ")
	t, ok := parseType(name)
	size, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil || size < 0 {
		return 0, nil, fmt.Errorf("%w: %s: header %q", errCorrupt, path, head)
	}
	data, err = io.ReadAll(io.LimitReader(r, size+1))
	if err != nil || int64(len(data)) != size {
		return 0, nil, fmt.Errorf("%w: %s: wrong length", errCorrupt, path)
	}
	return t, data, nil
}
