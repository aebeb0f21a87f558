package alert

import (
	"context"

	"bagpipe/engine/gitstore"
)

// AlertsFile is where it is remembered what was told.
const AlertsFile = alertsFile

// News is what a digest says is new.
func (d *Digest) News() string { return d.news() }

// Post sends a digest to an address.
func Post(ctx context.Context, url string, data []byte) error { return post(ctx, url, data) }

// LookAgain lets the alerts look anew at a tip at which nothing was new.
func (al *Alerts) LookAgain() { al.seen = gitstore.Hash{} }
