package engine

import (
	"crypto/sha256"
	"encoding/hex"
)

// digestOf is sha256:HEX of data.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
