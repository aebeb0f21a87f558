package recognise

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"bagpipe/layout"
)

// The rules are: the program of a rule is asked once all that the rule matches holds. What it
// says counts as one more condition, and its fields go before those of the rule. A program that
// cannot be asked, or answers nonsense, says unknown, as what cannot be read does.

// Asked is what the program of a rule is asked about.
type Asked struct {
	Rule       string
	Argv       []string
	Path, Name string
	Collection layout.Name
}

// Said is what the program answers.
type Said struct {
	Verdict     string            `json:"verdict"` // yes, maybe or no
	Why         string            `json:"why"`
	Type        string            `json:"type"`
	Label       string            `json:"label"`
	Identifiers map[string]string `json:"identifiers"`
	Metadata    map[string]any    `json:"metadata"`
}

const maxSaid = 64 << 10 // of metadata, encoded

// ask has the program of a rule that said something say what it takes the drop for.
func (f *facts) ask(ctx context.Context, o Options, t *tried) {
	if t.rule.Program == nil || t.verdict == No {
		return
	}
	verdict, said := Unknown, Said{Why: "its program is not asked here"}
	if o.Ask != nil && f.c.Files == nil {
		var err error
		said, err = o.Ask(ctx, Asked{Rule: t.rule.ID(), Argv: t.rule.Program, Path: f.c.Path, Name: f.c.Name, Collection: f.c.Collection})
		if err == nil {
			verdict, err = said.check()
		}
		if err != nil {
			verdict, said = Unknown, Said{Why: "its program: " + err.Error()}
		}
	}
	if t.said = said; verdict <= t.verdict {
		t.met = nearlyMet
		t.verdict, t.why = verdict, strings.TrimSuffix("its program says "+verdict.String()+": "+said.Why, ": ")
	}
}

// check refuses fields that no item may have.
func (s *Said) check() (Verdict, error) {
	verdict, ok := map[string]Verdict{"yes": Yes, "maybe": Maybe, "no": No}[s.Verdict]
	if !ok {
		return Unknown, fmt.Errorf("verdict %q: expected yes, maybe or no", s.Verdict)
	}
	if _, err := layout.ParseName(s.Type); s.Type != "" && err != nil {
		return Unknown, fmt.Errorf("type: %w", err)
	}
	for key := range s.Identifiers {
		if _, err := layout.ParseName(key); err != nil {
			return Unknown, fmt.Errorf("identifiers: %w", err)
		}
	}
	if data, err := json.Marshal(s.Metadata); err != nil || len(data) > maxSaid || len(s.Metadata)+len(s.Identifiers) > maxValues {
		return Unknown, fmt.Errorf("more than %d fields, or %d bytes of them", maxValues, maxSaid)
	}
	for key := range s.Metadata {
		if _, err := layout.ParseName(key); err != nil {
			return Unknown, fmt.Errorf("metadata: %w", err)
		}
	}
	return verdict, nil
}

// adopt puts what the program said of a drop in the place of what its rule says.
func (o *Outcome) adopt(s Said) {
	if s.Type != "" {
		o.Type = s.Type
	}
	if s.Label != "" {
		o.Label = cut(s.Label, maxLabel)
	}
	for key, text := range s.Identifiers {
		o.Identifiers[key] = cut(text, maxIdentifier)
	}
	maps.Copy(o.Metadata, s.Metadata)
}
