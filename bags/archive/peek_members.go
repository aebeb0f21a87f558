package archive

import (
	"fmt"
	"io"
)

// Peek asks for the bytes of a few small members while an archive is listed. Members of
// 7z and rar are not given: one may need all members before it unpacked.
type Peek struct {
	Max  int64                          // bytes of one member; of a larger one Got gets none
	Want func(path string) bool         // asked for every file
	Got  func(path string, data []byte) // nil data: larger than Max, or not readable
}

// peek reads a member that is asked for; what cannot be read is told by who unpacks it.
func (s *sink) peek(path string, size int64, open func() (io.ReadCloser, error)) {
	p := s.look.peek
	if p == nil || !p.Want(path) {
		return
	}
	if size > p.Max {
		p.Got(path, nil)
		return
	}
	data, err := readPeeked(p.Max, open)
	if err != nil {
		data = nil
	}
	p.Got(path, data)
}

func readPeeked(most int64, open func() (io.ReadCloser, error)) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("is larger than %d bytes", most)
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// peekZip reads what is asked for of the members that were admitted. It is called once
// the whole directory is sound.
func (s *sink) peekZip(files []zipFile) {
	for _, f := range files {
		s.peek(f.path, f.size, f.file.Open)
	}
}
