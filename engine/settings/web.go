package settings

import (
	"fmt"

	"bagpipe/engine/condition"
	"bagpipe/layout"
)

// WebSettings say what the pages show beyond what every workspace has.
type WebSettings struct {
	Facets []string `yaml:"facets"` // paths whose values items are counted by, as in metadata.tags
}

func (w WebSettings) check(y *layout.YAML) error {
	const most = 20
	if len(w.Facets) > most {
		return y.Errorf("$.web.facets", "%d paths; expected at most %d", len(w.Facets), most)
	}
	for i, path := range w.Facets {
		if err := condition.CheckPath(path); err != nil {
			return y.Errorf(fmt.Sprintf("$.web.facets[%d]", i), "%v", err)
		}
	}
	return nil
}
