package main

import (
	"encoding/json"
	"errors"
	"io"

	"bagpipe/bags/files"
)

// event prints one object on a line of standard output.
func (a *app) event(name string, v map[string]any) { a.eventTo(a.out, name, v) }

// jsonLine prints one object on a line of standard output.
func (a *app) jsonLine(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (a *app) eventTo(w io.Writer, name string, v map[string]any) {
	v["event"] = name
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		a.talk("bagpipe: %s", errorText(err))
	}
}

// archiveFailed reports what is wrong with an archive as an event, too.
func (a *app) archiveFailed(given string, err error, asJSON bool) error {
	var broken *files.Error
	if asJSON && errors.As(err, &broken) {
		a.event("problem", problemOf(given, broken))
	}
	return err
}
