package codepage

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Names in zips and old rars are bytes in a code page that nobody wrote down. The
// rules are:
//
//   - what the archive declares (the UTF-8 flag, the Unicode path field) is taken
//     where it is true;
//   - what is valid UTF-8 is UTF-8, declared or not;
//   - a code page that a person names is used for the rest;
//   - else all such names of the archive together are read in each candidate, and
//     the one that reads most like words wins. The guess is a warning.

// Raw keeps names as the bytes they are.
const Raw = "raw"

type codePage struct {
	name string
	enc  encoding.Encoding
}

// codePages stand in the order in which they win a tie.
func codePages() []codePage {
	return []codePage{
		{"cp850", charmap.CodePage850}, {"cp437", charmap.CodePage437}, {"windows-1252", charmap.Windows1252},
		{"cp852", charmap.CodePage852}, {"windows-1250", charmap.Windows1250},
		{"cp866", charmap.CodePage866}, {"windows-1251", charmap.Windows1251}, {"koi8-r", charmap.KOI8R},
		{"windows-1253", charmap.Windows1253},
		{"shift_jis", japanese.ShiftJIS}, {"gbk", simplifiedchinese.GBK}, {"euc-kr", korean.EUCKR},
		{"big5", traditionalchinese.Big5}, {"euc-jp", japanese.EUCJP},
		{"macintosh", charmap.Macintosh}, {"iso-8859-2", charmap.ISO8859_2}, {"iso-8859-15", charmap.ISO8859_15},
	}
}

// guessed counts the codePages that are candidates of a guess: the last ones differ
// too little from others, or are too rare in archives.
const guessed = 13

// Names lists the code pages that New takes.
func Names() []string {
	names := []string{Raw}
	for _, p := range codePages() {
		names = append(names, p.name)
	}
	return names
}

// A Namer turns stored names into UTF-8. The zero Namer leaves them as they are.
type Namer struct {
	page codePage // zero: names stay as they are
}

// New gives the Namer of the code page asked for, or of the page guessed from the stored
// names. note is a warning about the guess, or empty.
func New(asked string, stored []string) (n Namer, note string, err error) {
	if asked == Raw {
		return Namer{}, "", nil
	}
	if asked != "" {
		i := slices.IndexFunc(codePages(), func(p codePage) bool { return p.name == strings.ToLower(asked) })
		if i < 0 {
			return Namer{}, "", fmt.Errorf("no code page %q; there are %s", asked, strings.Join(Names(), ", "))
		}
		return Namer{codePages()[i]}, "", nil
	}
	stored = slices.DeleteFunc(slices.Clone(stored), utf8.ValidString)
	if len(stored) == 0 {
		return Namer{}, "", nil
	}
	page, ok := guessPage(stored)
	if !ok {
		return Namer{}, "names are not UTF-8 and read as words in no known code page: kept as they are", nil
	}
	return Namer{page}, "names are not UTF-8; they read best as " + page.name + ", and were taken so", nil
}

// Decode gives the name in UTF-8, or unchanged where the page cannot read it.
func (n Namer) Decode(stored string) string {
	if n.page.enc == nil || utf8.ValidString(stored) {
		return stored
	}
	if s, ok := n.page.read(stored); ok {
		return s
	}
	return stored
}

func (p codePage) read(stored string) (string, bool) {
	s, err := p.enc.NewDecoder().String(stored)
	if err != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// guessPage looks at 1,000 names at most: more decide nothing.
func guessPage(stored []string) (best codePage, ok bool) {
	stored = stored[:min(len(stored), 1000)]
	top := 0.0
	for _, p := range codePages()[:guessed] {
		if score, fits := p.score(stored); fits && score > top {
			best, top, ok = p, score, true
		}
	}
	return best, ok
}

// score is the mean of what the characters beyond ASCII are worth, by the bytes
// they stand for; fits is false where a name cannot be read.
func (p codePage) score(stored []string) (mean float64, fits bool) {
	total, bytes := 0.0, 0
	for _, name := range stored {
		s, ok := p.read(name)
		if !ok {
			return 0, false
		}
		before := rune(' ')
		runes := []rune(s)
		for i, r := range runes {
			after := rune(' ')
			if i+1 < len(runes) {
				after = runes[i+1]
			}
			if r >= utf8.RuneSelf {
				total += worth(before, r, after)
			}
			before = r
		}
		for i := range len(name) {
			if name[i] >= utf8.RuneSelf {
				bytes++
			}
		}
	}
	return total / float64(max(bytes, 1)), true
}

// worth says how well r stands between its neighbours: letters of one script, in
// small letters after the first, are words; frames and signs are not.
func worth(before, r, after rune) float64 {
	if !unicode.IsLetter(r) {
		if unicode.IsControl(r) || unicode.In(r, unicode.So, unicode.Sk, unicode.Co) || 0x2190 <= r && r < 0x2600 {
			return -2
		}
		return -0.5
	}
	v := 1.0
	if script := scriptOf(r); script >= scriptHan && (scriptOf(before) == scriptLatin || scriptOf(after) == scriptLatin) {
		return 0.5
	}
	switch script := scriptOf(r); script {
	case scriptHan:
		v = 1.6 // one letter for two bytes
		if common, known := commonHan(r); known && common {
			v = 2
		}
	case scriptHangul:
		v = 1
		if b, err := korean.EUCKR.NewEncoder().Bytes([]byte(string(r))); err == nil && 0xb0 <= b[0] && b[0] <= 0xc8 && b[1] >= 0xa1 {
			v = 2.1
		}
		if scriptOf(before) == scriptHan || scriptOf(after) == scriptHan {
			v = 0 // Chinese read as Korean
		}
	case scriptKana:
		v = 2
		if 0xff00 <= r && r < 0xfff0 {
			v = 0.2 // half-width: a byte each, and nobody's choice
		}
	default:
		for _, near := range []rune{before, after} {
			if unicode.IsLetter(near) && scriptOf(near) != script {
				v -= 1.5
			}
		}
		if unicode.IsLower(before) && unicode.IsUpper(r) || unicode.IsUpper(r) && unicode.IsLower(after) && unicode.IsLetter(before) {
			v -= 1
		}
		if unicode.IsUpper(before) && unicode.IsLower(r) && unicode.IsUpper(after) {
			v -= 1
		}
	}
	return v
}

const (
	scriptOther = iota
	scriptLatin
	scriptGreek
	scriptCyrillic
	scriptHan
	scriptKana
	scriptHangul
)

func scriptOf(r rune) int {
	switch {
	case unicode.Is(unicode.Latin, r):
		return scriptLatin
	case unicode.Is(unicode.Cyrillic, r):
		return scriptCyrillic
	case unicode.Is(unicode.Greek, r):
		return scriptGreek
	case unicode.Is(unicode.Han, r):
		return scriptHan
	case unicode.In(r, unicode.Hiragana, unicode.Katakana), r == 'ー':
		return scriptKana
	case unicode.Is(unicode.Hangul, r):
		return scriptHangul
	}
	return scriptOther
}

// commonHan reports whether a character is in the first, frequent part of GB 2312 or
// JIS X 0208, which are sorted by use.
func commonHan(r rune) (common, known bool) {
	if b, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte(string(r))); err == nil && len(b) == 2 {
		if 0xb0 <= b[0] && b[0] <= 0xd7 && b[1] >= 0xa1 {
			return true, true
		}
		known = true
	}
	if b, err := japanese.EUCJP.NewEncoder().Bytes([]byte(string(r))); err == nil && len(b) == 2 {
		if 0xb0 <= b[0] && b[0] <= 0xcf {
			return true, true
		}
		known = true
	}
	return false, known
}
