package describe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
)

// readPDF reads a PDF's information, pages and what it is protected by.
func readPDF(q Request, facts *Facts) error {
	f, size, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	api.DisableConfigDir() // nothing of the person who runs this counts
	conf := model.NewDefaultConfiguration()
	conf.ValidationMode = model.ValidationRelaxed
	conf.Offline = true
	conf.Cmd = model.LISTINFO
	facts.Entity["format"] = "PDF"
	end := make([]byte, min(size, 64<<10))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	ctx, err := api.ReadContext(f, conf)
	at := tableOfPDF(end, size)
	if err == nil {
		err = api.ValidateContext(ctx)
		at = suspect(ctx, at)
	}
	if errors.Is(err, pdfcpu.ErrWrongPassword) || errors.Is(err, pdfcpu.ErrUnknownEncryption) || err != nil && strings.Contains(err.Error(), "unsupported encryption") {
		facts.Entity["encrypted"] = true
		facts.warn("encrypted, so that only who has its password or key can read it; nothing else is known of it")
		return nil
	}
	if err != nil {
		if strings.Contains(err.Error(), "no header") {
			at = "byte 0"
		}
		return fmt.Errorf("PDF: at %s: %w", at, err)
	}
	if !bytes.Contains(end, []byte("startxref")) {
		facts.warn("PDF: at byte %d: it ends without saying where its objects are, as one does that was cut off; what was found of it may lack some", size)
	}
	info, err := pdfcpu.Info(ctx, q.Name, nil, false)
	if err != nil {
		return fmt.Errorf("PDF: at %s: %w", at, err)
	}
	e, b := facts.Entity, facts.Business
	say(e, "version", info.Version)
	say(e, "pages", info.PageCount)
	sizes, err := ctx.PageDims()
	if err != nil {
		return fmt.Errorf("PDF: at %s: %w", at, err)
	}
	if len(sizes) > 0 {
		e["pageSize"] = fmt.Sprintf("%v × %v pt", math.Round(sizes[0].Width*100)/100, math.Round(sizes[0].Height*100)/100)
	}
	for key, is := range map[string]bool{"encrypted": info.Encrypted, "tagged": info.Tagged, "form": info.Form, "signed": info.Signatures} {
		if is {
			e[key] = true
		}
	}
	say(e, "attachments", len(info.Attachments))
	if !info.Encrypted && encryptedInPlace(end) {
		e["encrypted"] = true
		facts.warn("encrypted by a dictionary within its trailer, which is not read; what it says of itself is left out")
		return nil
	}
	if info.CreationDate == noDate {
		info.CreationDate = ""
	}
	say(e, "producer", informed(ctx, "Producer", info.Producer))
	say(e, "writtenWith", informed(ctx, "Creator", info.Creator))
	say(b, "title", informed(ctx, "Title", info.Title))
	say(b, "creator", informed(ctx, "Author", info.Author))
	say(b, "subject", informed(ctx, "Subject", info.Subject))
	if strings.HasPrefix(info.CreationDate, "D:") {
		info.CreationDate = "" // filled up by pdfcpu with what the file does not say
	}
	say(b, "created", pdfDate(informed(ctx, "CreationDate", info.CreationDate)))
	sayAll(b, "keywords", keywords(ctx))
	return nil
}

var startOfTable = regexp.MustCompile(`startxref\s+(\d{1,18})`)

// tableOfPDF is where a reader of a PDF begins: where its end says that its table of objects is, or where it should say so.
func tableOfPDF(end []byte, size int64) string {
	all := startOfTable.FindAllSubmatchIndex(end, -1)
	if len(all) == 0 {
		return fmt.Sprintf("byte %d", size)
	}
	last := all[len(all)-1]
	if at, err := strconv.ParseInt(string(end[last[2]:last[3]]), 10, 64); err == nil && at < size {
		return fmt.Sprintf("byte %d", at)
	}
	return fmt.Sprintf("byte %d", size-int64(len(end))+int64(last[0]))
}

// suspect is the object of a PDF that pdfcpu, which knows no bytes of what it refuses, had not done with: one that it was checking,
// else the catalog.
func suspect(ctx *model.Context, table string) string {
	at := table
	if ctx.Root != nil {
		at = objectOfPDF(ctx, ctx.Root.ObjectNumber.Value(), at)
	}
	for _, n := range slices.Sorted(maps.Keys(ctx.Table)) {
		if e := ctx.Table[n]; e != nil && e.BeingValidated {
			at = objectOfPDF(ctx, n, at)
		}
	}
	return at
}

func objectOfPDF(ctx *model.Context, n int, otherwise string) string {
	e := ctx.Table[n]
	if e != nil && e.Compressed && e.ObjectStream != nil {
		e = ctx.Table[*e.ObjectStream]
	}
	if e == nil || e.Offset == nil {
		return otherwise
	}
	return fmt.Sprintf("byte %d, in object %d or what it leads to", *e.Offset, n)
}

// keywords are those of a PDF's information, then those of its XMP, each as the file has them: pdfcpu gives them as a map does.
func keywords(ctx *model.Context) (all []string) {
	texts := []string{ctx.Keywords}
	if x := ctx.CatalogXMPMeta; x != nil {
		texts = append(texts, x.RDF.Description.Keywords)
	}
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",;\r\n", c) }) {
			if word = clean(word); word != "" {
				all = append(all, word)
			}
		}
	}
	return all
}

// encryptedInPlace reports whether the last trailer, in the end of a file, has the dictionary of its encryption within, where pdfcpu
// sees none.
func encryptedInPlace(end []byte) bool {
	return inTrailer.Match(end[max(0, bytes.LastIndex(end, []byte("trailer"))):])
}

var inTrailer = regexp.MustCompile(`/Encrypt\s*<<`)

var inPDF = regexp.MustCompile(`^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-]\d\d)'?(\d\d)?)?`)

// pdfDate writes a date as PDFs have them as RFC 3339 does, as far as it goes; one of an hour alone as its day. "" where it is none.
func pdfDate(text string) string {
	m := inPDF.FindStringSubmatch(text)
	if m == nil {
		if _, _, ok := period(text); !ok {
			return ""
		}
		return text
	}
	out := m[1]
	for _, part := range m[2:4] { // month and day
		if part != "" {
			out += "-" + part
		}
	}
	if m[5] != "" {
		out += "T" + m[4] + ":" + m[5] + ":" + cmp.Or(m[6], "00")
		switch {
		case m[7] != "", m[8] != "" && m[8][1:] == "00" && cmp.Or(m[9], "00") == "00":
			out += "Z"
		case m[8] != "":
			out += m[8] + ":" + cmp.Or(m[9], "00")
		}
	}
	if _, _, ok := period(out); !ok {
		return ""
	}
	return out
}

// noDate is how the date of XMP without one is given.
var noDate = time.Time{}.Format(time.RFC3339Nano)

// informed is what a PDF says or, where that is nothing, what its information does: XMP that
// is the newer takes the place of all of it, of what it leaves out, too.
func informed(ctx *model.Context, key, says string) string {
	if says != "" || ctx.Info == nil {
		return says
	}
	d, err := ctx.DereferenceDict(*ctx.Info)
	if err != nil || d[key] == nil {
		return ""
	}
	text, err := ctx.DereferenceStringOrHexLiteral(d[key], model.V10, nil)
	if err != nil {
		return ""
	}
	return text
}
