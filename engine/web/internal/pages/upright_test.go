package pages

import "testing"

func TestUpright(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain – 1\u202f000 €": "plain – 1\u202f000 €",
		"gpj.\u202eexe":                    `gpj.\u202eexe`,
		"\u2066a\u2069 b\u202a":            `\u2066a\u2069 b\u202a`,
		"<a title=\"\u202ea\">\u202ea</a>": "<a title=\"\u202ea\">\\u202ea</a>",
		"<textarea name=\"list\">a\u202eb</textarea><b>\u202e</b>": "<textarea name=\"list\">a\u202eb</textarea><b>\\u202e</b>",
		"\xe2\u202e\xe2":          "\xe2\\u202e\xe2",
		"<b>שלום\u200f</b>\u202c": "<b>שלום\u200f</b>\\u202c",
	} {
		if got := string(upright([]byte(in))); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
}
