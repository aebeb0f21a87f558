package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Phrase is words that stand one after the other. The last may be the beginning of one,
// unless it is a letter of a script without spaces.
type Phrase []string

// spaceless are the scripts whose words are not parted by spaces.
var spaceless = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Bopomofo}

// accents are the marks that are left out: those of Latin, Greek and Cyrillic, and the
// vowel points of Hebrew and Arabic. A mark of an Indic script is a vowel, that of Kana a
// letter of its own.
var accents = &unicode.RangeTable{R16: []unicode.Range16{
	{0x0300, 0x036f, 1}, {0x0483, 0x0487, 1}, {0x0591, 0x05bd, 1}, {0x05bf, 0x05bf, 1}, {0x05c1, 0x05c2, 1}, {0x05c4, 0x05c5, 1}, {0x05c7, 0x05c7, 1},
	{0x0610, 0x061a, 1}, {0x064b, 0x065f, 1}, {0x0670, 0x0670, 1}, {0x1ab0, 0x1aff, 1}, {0x1dc0, 0x1dff, 1}, {0x20d0, 0x20ff, 1}, {0xfe20, 0xfe2f, 1},
}}

// letters that do not come apart into a letter and its accent.
var plain = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ħ", "h", "ŧ", "t", "ı", "i", "æ", "ae", "œ", "oe", "ð", "d", "þ", "th")

// fold makes texts equal that differ in case, accents and width alone.
func fold(text string) string {
	if isPlain(text) {
		return strings.ToLower(text)
	}
	apart := norm.NFKD.String(strings.ToValidUTF8(text, " "))
	apart = strings.Map(func(r rune) rune {
		if unicode.Is(accents, r) {
			return -1
		}
		return r
	}, apart)
	return plain.Replace(norm.NFC.String(cases.Fold().String(apart)))
}

func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Words are the words of a text, as they are compared.
func Words(text string) []string {
	var few [16]string // so that a short text takes memory once
	words := few[:0]
	text = fold(text)
	start := -1
	end := func(at int) {
		if start >= 0 {
			words = append(words, clip(text[start:at]))
			start = -1
		}
	}
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z'):
			if start < 0 {
				start = i
			}
		case r < utf8.RuneSelf:
			end(i)
		case unicode.In(r, spaceless...):
			end(i)
			words = append(words, string(r))
		case unicode.In(r, unicode.L, unicode.N, unicode.M):
			if start < 0 {
				start = i
			}
		default:
			end(i)
		}
	}
	end(len(text))
	return slices.Clone(words)
}

// maxWord is how much of a word is compared: far above any that is one.
const maxWord = 256

func clip(word string) string {
	if len(word) <= maxWord {
		return word
	}
	return strings.ToValidUTF8(word[:maxWord], "")
}

// Phrases are what a text asks for: its words, and what stands in quotes.
func Phrases(text string) (all []Phrase) {
	for i, part := range strings.Split(text, `"`) {
		asked := []string{part}
		if i%2 == 0 {
			asked = strings.Fields(part)
		}
		for _, one := range asked {
			if words := Words(one); len(words) > 0 {
				all = append(all, words)
			}
		}
	}
	return all
}

// Open reports whether the last word may go on.
func (p Phrase) Open() bool {
	r, _ := utf8.DecodeLastRuneInString(p[len(p)-1])
	return !unicode.In(r, spaceless...)
}

// In reports whether a text of these words has the phrase.
func (p Phrase) In(words []string) bool {
	last := len(p) - 1
	for i := 0; i+last < len(words); i++ {
		if p.at(words[i:], last) {
			return true
		}
	}
	return false
}

func (p Phrase) at(words []string, last int) bool {
	for k := range last {
		if words[k] != p[k] {
			return false
		}
	}
	return words[last] == p[last] || p.Open() && strings.HasPrefix(words[last], p[last])
}
