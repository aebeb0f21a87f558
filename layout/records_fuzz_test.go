package layout

import (
	"bytes"
	"testing"
)

// FuzzRecordsOfItems: quality.json and delivery.json that people push are read or refused, and what
// was read is written so that it reads the same.
func FuzzRecordsOfItems(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "item": "3fa9c0d2e1b7a45", "targets": {"portal": {"state": "delivered", "version": 1, "sent": {"version": 1, "digest": "x", "at": "2026-01-01T00:00:00Z"}}}}`))
	f.Add([]byte(`{"schema": 1, "checks": {"opens": {"level": "total.usable", "result": "pass"}}, "levels": {}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := DecodeDeliveries(data); err == nil {
			twice(t, d.Encode, func(b []byte) (func() ([]byte, error), error) { d, err := DecodeDeliveries(b); return d.Encode, err })
		}
		if q, err := DecodeQuality(data); err == nil {
			q.Reckon()
			twice(t, q.Encode, func(b []byte) (func() ([]byte, error), error) { q, err := DecodeQuality(b); return q.Encode, err })
		}
	})
}

func twice(t *testing.T, encode func() ([]byte, error), decode func([]byte) (func() ([]byte, error), error)) {
	t.Helper()
	one, err := encode()
	if err != nil {
		return // a time that JSON cannot hold
	}
	again, err := decode(one)
	if err != nil {
		t.Fatalf("%s: %v", one, err)
	}
	if two, err := again(); err != nil || !bytes.Equal(one, two) {
		t.Errorf("%s, and then %s (%v)", one, two, err)
	}
}
