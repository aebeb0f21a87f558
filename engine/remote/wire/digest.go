package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"bagpipe/engine/fault"
)

// ContentDigest reads the SHA-256 of a Content-Digest field (RFC 9530).
func ContentDigest(field string) ([]byte, error) {
	for one := range strings.SplitSeq(field, ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(one), "sha-256=:"); ok {
			sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
			if err == nil && len(sum) == sha256.Size {
				return sum, nil
			}
		}
	}
	return nil, fault.New(fault.Invalid, "expected the header Content-Digest: sha-256=:BASE64:")
}

// Carried is a file whose bytes a message carries.
func Carried(path string, data []byte, exec bool) File {
	sum := sha256.Sum256(data)
	return File{Path: path, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Exec: exec, Data: data}
}

// ContentDigestOf is the field of bytes.
func ContentDigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}
