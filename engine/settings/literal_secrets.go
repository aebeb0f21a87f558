package settings

import (
	"bytes"
	"maps"
	"slices"

	"bagpipe/layout"
)

// This file refuses secrets that stand in settings, before those are committed. Robots have
// the environment of the engine, so that a secret needs no env: here.

// refuseSecrets refuses variables whose names say that their values are secrets.
func refuseSecrets(y *layout.YAML, at string, env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if layout.IsSecretName(name) && env[name] != "" {
			return y.Errorf(at+".env."+name, "%s is a secret by its name, and settings are committed: set it in the environment of the engine, which robots have, too", name)
		}
	}
	return nil
}

// refusePasswords refuses a file with an address that has a password in it, wherever it stands, as in a comment:
// https://ADA:PASSWORD@HOST. One that a shell puts in from a variable, https://ada:$PASSWORD@HOST, is none.
func refusePasswords(p string, data []byte) error {
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("://"))
		if i < 0 {
			return nil
		}
		at += i + len("://")
		who, _, is := bytes.Cut(untilHost(data[at:]), []byte("@"))
		if _, password, has := bytes.Cut(who, []byte(":")); is && has && len(password) > 0 && password[0] != '$' {
			line := bytes.LastIndexByte(data[:at], '\n') + 1
			return &layout.FileError{File: p, Line: bytes.Count(data[:at], []byte("\n")) + 1, Column: at - line + 1,
				Text: "expected an address without a password: settings are committed, and hold no secrets"}
		}
	}
}

// untilHost is what an address has before its path.
func untilHost(address []byte) []byte {
	if end := bytes.IndexAny(address, "/?# \t\r\n\"'`<>,"); end >= 0 {
		return address[:end]
	}
	return address
}
