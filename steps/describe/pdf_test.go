package describe

import (
	"bytes"
	"strings"
	"testing"

	"bagpipe/testdata/sample"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
)

// The keywords of a PDF stand in its own order, each once, and its first page's size is told.
func TestWhatAPDFIs(t *testing.T) {
	for range 20 {
		f, err := write(t, "a.pdf", string(keywordPDF("")))
		if err != nil {
			t.Fatal(err)
		}
		says(t, f, map[string]any{"pages": 2, "pageSize": "595.28 × 841.89 pt", "keywords": []any{"one", "two", "three", "four", "five"}, "encrypted": nil})
	}
}

// keywordPDF is a PDF of two pages with keywords. more stands in its trailer.
func keywordPDF(more string) []byte {
	id := "<0123456789abcdef0123456789abcdef>"
	return sample.PDF("/Info 4 0 R/ID["+id+id+"]"+more, "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2/MediaBox[0 0 595.276 841.89]>>",
		"<</Type/Page/Parent 2 0 R/Resources<<>>>>", "<</Title(A map)/Keywords(one, two; three, one, four, five)>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Resources<<>>>>")
}

// An encrypted PDF is said to be, whether it can be read, asks for a password, or has its encryption where pdfcpu does not look.
func TestEncryptedPDF(t *testing.T) {
	api.DisableConfigDir()
	encrypted := func(conf *model.Configuration) string {
		var b bytes.Buffer
		if err := api.Encrypt(bytes.NewReader(keywordPDF("")), &b, conf); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	key := strings.Repeat("0", 32)
	for name, c := range map[string]struct {
		data  string
		title any
		says  string
	}{
		"readable, AES": {encrypted(model.NewAESConfiguration("", "owner", 256)), "A map", ""},
		"readable, RC4": {encrypted(model.NewRC4Configuration("", "owner", 128)), "A map", ""},
		"password":      {encrypted(model.NewAESConfiguration("secret", "owner", 256)), nil, "only who has its password"},
		"in place":      {string(keywordPDF("/Encrypt <</Filter/Standard/V 1/R 2/O(" + key + ")/U(" + key + ")/P -4>>")), nil, "within its trailer"},
	} {
		f, err := write(t, "a.pdf", c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, f, map[string]any{"format": "PDF", "encrypted": true, "title": c.title})
		if said := strings.Join(f.Warnings, "; "); (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: says %q", name, said)
		}
	}
}
