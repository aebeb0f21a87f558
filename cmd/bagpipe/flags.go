package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// decodeDuration is how options take a time: as time.ParseDuration has it, or days.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("TIME", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
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

func parseDuration(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n <= 100*365 {
			return time.Duration(n * float64(day)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("expected a time such as 90m, 36h or 3d, not %q", text)
	}
	return d, nil
}
