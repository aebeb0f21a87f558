package main

import (
	"fmt"
	"reflect"
	"time"

	"bagpipe/layout"

	"github.com/alecthomas/kong"
)

// version is set at build time.
var version = "dev"

// decodeDuration is how options take a time: by layout.ParseDuration.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("TIME", &text); err != nil {
		return err
	}
	d, err := layout.ParseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// decodeTime is how options take a point in time.
func decodeTime(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("TIME", &text); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("expected a time such as 2020-01-31T12:00:00Z, not %q", text)
	}
	target.Set(reflect.ValueOf(t))
	return nil
}
