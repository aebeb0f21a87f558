package target

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"bagpipe/layout"
)

// Open connects to a target. The folder of a new one is made. Errors: *Down; others are of the
// configuration.
func Open(name layout.Name, c Config, now func() time.Time) (Target, error) {
	return openUsed(name, c, now, func() (bool, error) { return false, nil })
}

// openUsed is Open; used is asked where the folder is not there. What copies were made in is
// somewhere else, and never made.
func openUsed(name layout.Name, c Config, now func() time.Time, used func() (bool, error)) (Target, error) {
	b, err := openBackend(name, c, now, used)
	if err != nil {
		return nil, err
	}
	if c.Kind != KindFolder || c.Streams > 0 {
		b = &bounded{b, make(chan struct{}, b.traits().streams)}
	}
	if c.Rate > 0 {
		b = &paced{backend: b, pace: pace{perSecond: float64(c.Rate)}}
	}
	switch cmp.Or(c.Layout, LayoutBag) {
	case LayoutTar:
		return &tarTarget{b, now, newToken()}, nil
	case LayoutOCFL:
		return newOCFL(b, now), nil
	default:
		return &bagTarget{b, now, newToken()}, nil
	}
}

// newToken tells a target from others that put on the same store.
func newToken() string { return strings.ToLower(rand.Text()[:8]) }

func openBackend(name layout.Name, c Config, now func() time.Time, used func() (bool, error)) (backend, error) {
	switch c.Kind {
	case KindFolder:
		return openFolder(c.Path, c.Streams, used)
	case KindS3:
		return openS3(name, c, now)
	case KindSFTP:
		return openSFTP(name, c, used)
	}
	return nil, fmt.Errorf("target %s: kind %q is not known", name, c.Kind)
}
