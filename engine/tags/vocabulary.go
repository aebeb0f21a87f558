package tags

import (
	"slices"
	"strings"

	"bagpipe/engine/query"
	"bagpipe/layout"
)

// The kinds that tags have which no vocabulary names.
const (
	Business = "business"
	Time     = "time"
	Place    = "place"
)

// Vocabulary is vocabularies/NAME.yaml.
type Vocabulary struct {
	Schema      int                 `yaml:"schema"`
	Name        string              `yaml:"name"`
	Description string              `yaml:"description"`
	Kind        string              `yaml:"kind"` // "": business
	Tags        map[string][]string `yaml:"tags"`

	words map[string][]found // by their first word
}

// found is a tag and the words that stand for it.
type found struct {
	tag   string
	words []string
}

const schema = 1

// Parse reads vocabularies/NAME.yaml; its errors are *layout.FileError.
func Parse(file string, data []byte) (*Vocabulary, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	v := &Vocabulary{words: map[string][]found{}}
	if err := y.Decode(v); err != nil {
		return nil, err
	}
	if v.Schema != schema {
		return nil, y.Errorf("$.schema", "expected schema: %d", schema)
	}
	if want := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml"); want != v.Name {
		return nil, y.Errorf("$.name", "expected the file's name without .yaml, not %q", v.Name)
	}
	if v.Kind == "" {
		v.Kind = Business
	}
	if _, err := layout.ParseName(v.Kind); err != nil || v.Kind == Time || v.Kind == Place {
		return nil, y.Errorf("$.kind", "expected a name other than time and place, not %q", v.Kind)
	}
	if len(v.Tags) == 0 {
		return nil, y.Errorf("$", "expected tags")
	}
	for tag, texts := range v.Tags {
		if strings.TrimSpace(tag) != tag || len(query.Words(tag)) == 0 || len(tag) > maxTag {
			return nil, y.Errorf("$.tags", "expected a tag of at most %d bytes with a word in it, not %q", maxTag, tag)
		}
		if len(texts) == 0 {
			texts = []string{tag}
		}
		for _, text := range texts {
			words := query.Words(text)
			if len(words) == 0 {
				return nil, y.Errorf("$.tags", "%s: expected words, not %q", tag, text)
			}
			v.words[words[0]] = append(v.words[words[0]], found{tag, words})
		}
	}
	return v, nil
}

// maxTag is far above any tag.
const maxTag = 200

// in adds the tags that the words of one text have.
func (v *Vocabulary) in(words []string, to map[string]bool) {
	for i, w := range words {
		for _, f := range v.words[w] {
			if len(f.words) <= len(words)-i && slices.Equal(f.words, words[i:i+len(f.words)]) {
				to[f.tag] = true
			}
		}
	}
}
