package sync

import (
	"bytes"
	"context"
	"errors"
	"path"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// takeSite takes what a branch of a site, or main, has at a remote. A record of a newer schema in it would be left out
// by a join here, and its item held at each site: the branch waits until this workspace can read it.
func (s *Syncer) takeSite(ctx context.Context, theirs gitstore.Hash) (bool, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	base, err := s.ledger.Store.Base(ctx, v.Commit(), theirs)
	if err != nil {
		return false, err
	}
	if base != theirs && !base.IsZero() {
		if err := s.readable(ctx, base, theirs); err != nil {
			return false, err
		}
	}
	return s.take(ctx, theirs, s.keepOurs)
}

// readable refuses a commit whose records, where they differ from those of another, have a schema that this version of
// the program does not know.
func (s *Syncer) readable(ctx context.Context, from, to gitstore.Hash) (err error) {
	reading := gitstore.NewScanning(s.ledger.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	read := reading.Scan()
	was, err := read.At(from)
	if err != nil {
		return err
	}
	is, err := read.At(to)
	if err != nil {
		return err
	}
	return read.Diff(was, is, func(d gitstore.Difference) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if path.Ext(d.Path) != ".json" {
			return nil
		}
		data, err := read.Blob(d, d.Is)
		if err != nil {
			return err
		}
		if newer := newerSchema(d.Path, data); newer != nil {
			newer.File = d.Path
			return fault.New(fault.Refused, newer.Error())
		}
		return nil
	})
}

// newerSchema is what is wrong with a record of a newer schema; nil of all others. Nearly all records are of the first,
// and are not read any further.
func newerSchema(name string, data []byte) *layout.SchemaError {
	if data == nil || bytes.Contains(data, []byte("\n  \"schema\": 1\n")) || bytes.Contains(data, []byte("\n  \"schema\": 1,\n")) {
		return nil
	}
	var err error
	switch _, rest, isItem := layout.ItemOfPath(name); {
	case isItem && rest == layout.ExecutionJSON:
		_, err = state.Decode(data)
	case isItem && rest == layout.ManifestJSON:
		_, err = layout.DecodeManifest(data)
	case isItem && rest == layout.InventoryJSON:
		_, err = layout.DecodeInventory(data)
	case isItem && rest == layout.DepositsJSON:
		_, err = layout.DecodeDeposits(data)
	case isItem && rest == layout.QualityJSON:
		_, err = layout.DecodeQuality(data)
	case isItem && rest == layout.DeliveryJSON:
		_, err = layout.DecodeDeliveries(data)
	case name == layout.ControlsFile:
		_, err = state.DecodeControls(data)
	case path.Dir(name) == layout.SitesDir:
		_, err = layout.DecodeSite(data)
	case path.Dir(name) == layout.BatchesDir:
		_, err = layout.DecodeBatch(data)
	case layout.IsRetiredPath(name):
		_, err = layout.DecodeRetired(data)
	}
	newer, _ := errors.AsType[*layout.SchemaError](err)
	return newer
}
