package wire

import (
	"encoding/json"
	"fmt"
)

const (
	// Protocol is the number of this package's messages. Oldest is the oldest that is
	// understood.
	Protocol = 1
	Oldest   = 1

	// MaxMessage bounds what goes through NATS; what is larger goes over HTTPS.
	MaxMessage = 256 << 10
	// MaxCarrying bounds a message with a call or an end: over a slow link, beats wait behind it.
	MaxCarrying = 64 << 10
	// MaxDocument bounds a call and an end, which go over HTTPS and hold an item's records.
	MaxDocument = 64 << 20
)

// Message is a value with a protocol's number.
type Message interface{ protocol() int }

// Head is the part that all messages have.
type Head struct {
	V int `json:"v"`
}

func (h Head) protocol() int { return h.V }

// Now is the head of a message of this program.
func Now() Head { return Head{V: Protocol} }

// Encode gives the bytes of a message for NATS.
func Encode(m Message) ([]byte, error) { return encode(m, MaxMessage) }

// EncodeCarrying gives the bytes of a message for NATS that carries a call or an end.
func EncodeCarrying(m Message) ([]byte, error) { return encode(m, MaxCarrying) }

// EncodeDocument gives the bytes of a message for HTTPS.
func EncodeDocument(m Message) ([]byte, error) { return encode(m, MaxDocument) }

func encode(m Message, most int) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("encode %T: %d bytes, more than %d", m, len(data), most)
	}
	return data, nil
}

// VersionError is the answer to a message of a protocol that is not understood.
type VersionError struct{ V int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("protocol %d; this program speaks %d to %d", e.V, Oldest, Protocol)
}

// Decode reads a message into m, a pointer to one. What comes from a network is hostile: the
// values in it are checked by whoever uses them.
func Decode(data []byte, m Message) error {
	if len(data) > MaxDocument {
		return fmt.Errorf("a message of %d bytes", len(data))
	}
	if err := json.Unmarshal(data, m); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	if v := m.protocol(); v < Oldest || v > Protocol {
		return &VersionError{v}
	}
	return nil
}
