package settings

import (
	"maps"
	"net/url"
	"slices"

	"bagpipe/engine/state"
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

func refusePassword(y *layout.YAML, a *state.Alert) error {
	if a == nil {
		return nil
	}
	if u, err := url.Parse(a.URL); err == nil && u.User != nil {
		return y.Errorf("$.alert.url", "expected an address without a password: settings are committed; a command can read it elsewhere")
	}
	return nil
}
