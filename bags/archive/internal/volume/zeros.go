package volume

import (
	"errors"
	"io"
)

// OnlyZeros reports whether r holds nothing but zeros.
func OnlyZeros(r io.Reader) (bool, error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if !IsZero(buf[:n]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// IsZero reports whether p holds nothing but zeros.
func IsZero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}
