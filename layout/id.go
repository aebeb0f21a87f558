package layout

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ItemID names a work item: 14 random hexadecimal digits and a check digit
// (Luhn mod 16), lower-case. The zero value names nothing.
type ItemID string

// EngineID names one running engine: 8 random hexadecimal digits.
type EngineID string

// ItemIDLen is the length of an item's identifier.
const ItemIDLen = 15

const (
	engineIDLen = 8
	hexDigits   = "0123456789abcdef"
)

// NewItemID draws an identifier from random.
func NewItemID(random io.Reader) (ItemID, error) {
	var b [7]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw an item identifier: %w", err)
	}
	body := hex.EncodeToString(b[:])
	return ItemID(body + string(checkDigit(body))), nil
}

// ParseItemID checks length, digits and check digit.
func ParseItemID(s string) (ItemID, error) {
	if len(s) != ItemIDLen || !isHex(s) {
		return "", fmt.Errorf("item identifier %q: want 15 lower-case hexadecimal digits", s)
	}
	if checkDigit(s[:ItemIDLen-1]) != s[ItemIDLen-1] {
		return "", fmt.Errorf("item identifier %q: the check digit is wrong; was a digit mistyped?", s)
	}
	return ItemID(s), nil
}

// IsItemPrefix reports whether s could begin an identifier.
func IsItemPrefix(s string) bool {
	return s != "" && len(s) <= ItemIDLen && isHex(s)
}

// Short is the identifier as shown to people; unique enough in most workspaces.
func (id ItemID) Short() string {
	if len(id) < ItemIDLen {
		return string(id)
	}
	return string(id[:8])
}

// checkDigit is Luhn mod 16 over lower-case hexadecimal digits: from the right,
// every other digit is doubled and its base-16 digits added.
func checkDigit(body string) byte {
	sum, double := 0, true
	for i := len(body) - 1; i >= 0; i-- {
		d := hexValue(body[i])
		if double {
			d *= 2
			d = d/16 + d%16
		}
		sum += d
		double = !double
	}
	return hexDigits[(16-sum%16)%16]
}

func isHex(s string) bool {
	for i := range len(s) {
		if hexValue(s[i]) < 0 {
			return false
		}
	}
	return true
}

// hexValue is that of a lower-case hexadecimal digit; -1 for anything else.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// NewEngineID draws an engine's identifier from random.
func NewEngineID(random io.Reader) (EngineID, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw an engine identifier: %w", err)
	}
	return EngineID(hex.EncodeToString(b[:])), nil
}

// ParseEngineID checks length and digits.
func ParseEngineID(s string) (EngineID, error) {
	if len(s) != engineIDLen || !isHex(s) {
		return "", fmt.Errorf("engine identifier %q: want 8 lower-case hexadecimal digits", s)
	}
	return EngineID(s), nil
}

// AttemptKey names one attempt at a step. Only its engine writes its record.
type AttemptKey struct {
	N      int
	Engine EngineID
}

// MaxAttempt is the highest number of an attempt; it leaves room for the next one
// in any integer.
const MaxAttempt = 1_000_000_000

// ParseAttemptKey reads N-ENGINE.
func ParseAttemptKey(s string) (AttemptKey, error) {
	num, engine, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(num)
	if !ok || err != nil || n < 1 || n > MaxAttempt || strconv.Itoa(n) != num {
		return AttemptKey{}, fmt.Errorf("attempt key %q: want N-ENGINE", s)
	}
	e, err := ParseEngineID(engine)
	if err != nil {
		return AttemptKey{}, fmt.Errorf("attempt key %q: %w", s, err)
	}
	return AttemptKey{N: n, Engine: e}, nil
}

func (k AttemptKey) String() string { return strconv.Itoa(k.N) + "-" + string(k.Engine) }

// IsZero reports whether k names no attempt.
func (k AttemptKey) IsZero() bool { return k.N == 0 }

// Compare orders by N, then by engine.
func (k AttemptKey) Compare(o AttemptKey) int {
	return cmp.Or(cmp.Compare(k.N, o.N), cmp.Compare(k.Engine, o.Engine))
}

// AttemptRef names one attempt at a step of an item, in a numbered run of a workflow.
type AttemptRef struct {
	Item     ItemID
	Workflow string
	Step     Name
	Key      AttemptKey
}

// IntentKey names an intent: ULID-ENGINE. Keys order by time.
type IntentKey string

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewIntentKey makes a key for an intent formed now by engine.
func NewIntentKey(now time.Time, random io.Reader, engine EngineID) (IntentKey, error) {
	var r [16]byte
	if _, err := io.ReadFull(random, r[:]); err != nil {
		return "", fmt.Errorf("draw an intent key: %w", err)
	}
	var out [26]byte
	ms := uint64(now.UnixMilli())
	for i := 9; i >= 0; i-- {
		out[i] = crockford[ms&31]
		ms >>= 5
	}
	for i, b := range r {
		out[10+i] = crockford[b&31]
	}
	return IntentKey(string(out[:]) + "-" + string(engine)), nil
}

// Bits gives the random digits of an identifier as a number, which takes half the
// room; ItemIDOf gives it back. Only of an identifier that was checked.
func (id ItemID) Bits() uint64 {
	bits, _ := strconv.ParseUint(string(id[:min(len(id), ItemIDLen-1)]), 16, 64) // was checked
	return bits
}

// ItemIDOf is the identifier with these random digits, of which there are 14.
func ItemIDOf(bits uint64) ItemID {
	var b [ItemIDLen]byte
	for i := ItemIDLen - 2; i >= 0; i-- {
		b[i] = hexDigits[bits&15]
		bits >>= 4
	}
	b[ItemIDLen-1] = checkDigit(string(b[:ItemIDLen-1]))
	return ItemID(b[:])
}
