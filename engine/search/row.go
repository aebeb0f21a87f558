package search

import (
	"errors"
	"strconv"
	"strings"

	"bagpipe/engine/query"
)

// row is what of a document is written.
type row struct {
	keys, tags  []string
	words       []standing
	sums        []uint32 // of values, for conditions
	label, more string   // a text of which a word stands too far behind
	reach
	digest int64
}

// standing is a word of a document.
type standing struct {
	word    string
	inLabel bool
	stands  bool // among others, for phrases
	at      uint8
}

// A text's words are numbered for phrases: those of the label from 0, those of all other values from afterLabel on,
// with one number left out between values, so that no phrase goes over two.
const (
	afterLabel = 64
	lastWord   = 255
)

// between parts values of a text that FTS5 has: no word that is looked for holds it.
const between = " \ue000 "

func (d *document) row() *row {
	r := &row{reach: d.reach, digest: d.digest}
	for _, t := range d.terms {
		r.keys = append(r.keys, t.key())
		if t.facet == facetTag {
			r.tags = append(r.tags, t.value)
		}
	}
	if d.alike != "" {
		r.keys = append(r.keys, keyAlike+d.alike)
	}
	if d.crosses() {
		r.keys = append(r.keys, keyAcross)
	}
	values := make([][]string, 0, len(d.fields)+len(d.files)) // the label is the first
	r.sums = make([]uint32, 0, len(d.fields)+2)
	for _, f := range d.fields {
		if hasWords(f.name) {
			r.sums = append(r.sums, textSum(f.name, f.text))
			if n, is := number(f.text); is {
				r.sums = append(r.sums, numberSum(f.name, n))
			}
		}
		values = append(values, query.Words(f.text))
	}
	for _, name := range d.files {
		values = append(values, query.Words(shownName(name)))
	}
	r.spread(values)
	return r
}

// number reads a number as conditions do, or what one may take for it.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || !strings.Contains("+-.0123456789iInN", text[:1]) { // an error takes memory
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// spread numbers the words of the values; FTS5 gets those of a text with more words than there are numbers.
func (r *row) spread(values [][]string) {
	at, long, n := 0, false, 0
	for _, words := range values {
		n += len(words)
	}
	r.words = make([]standing, 0, n)
	for i, words := range values {
		stands := len(words) > 1 && !long
		if end := at + len(words); stands && (i == 0 && end >= afterLabel || end > lastWord) {
			long, stands = true, false
		}
		for k, word := range words {
			r.words = append(r.words, standing{word, i == 0, stands, uint8(at + k)})
		}
		if stands {
			at += len(words) + 1
		}
		if i == 0 {
			at = afterLabel
		}
	}
	if !long {
		return
	}
	r.keys = append(r.keys, keyLong)
	for i := range r.words {
		r.words[i].stands = false
	}
	var more strings.Builder
	for i, words := range values {
		switch {
		case len(words) < 2: // no phrase
		case i == 0:
			r.label = strings.Join(words, " ")
		default:
			more.WriteString(strings.Join(words, " ") + between)
		}
	}
	r.more = more.String()
}
