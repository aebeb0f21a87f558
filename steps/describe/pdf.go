package describe

import (
	"fmt"
	"math"
	"time"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// readPDF reads a PDF's information, pages and what it is protected by.
func readPDF(q Request, facts *Facts) error {
	f, _, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	api.DisableConfigDir() // nothing of the person who runs this counts
	conf := model.NewDefaultConfiguration()
	conf.ValidationMode = model.ValidationRelaxed
	conf.Offline = true
	conf.Cmd = model.LISTINFO
	ctx, err := api.ReadAndValidate(f, conf)
	if err != nil {
		return fmt.Errorf("PDF: %w", err)
	}
	info, err := pdfcpu.Info(ctx, q.Name, nil, false)
	if err != nil {
		return fmt.Errorf("PDF: %w", err)
	}
	e, b := facts.Entity, facts.Business
	e["format"] = "PDF"
	say(e, "version", info.Version)
	say(e, "pages", info.PageCount)
	if len(info.Dimensions) > 0 {
		d := info.Dimensions[0]
		e["pageSize"] = fmt.Sprintf("%v × %v pt", math.Round(d.Width), math.Round(d.Height))
	}
	for key, is := range map[string]bool{"encrypted": info.Encrypted, "tagged": info.Tagged, "form": info.Form, "signed": info.Signatures} {
		if is {
			e[key] = true
		}
	}
	say(e, "attachments", len(info.Attachments))
	if info.CreationDate == noDate {
		info.CreationDate = ""
	}
	say(e, "producer", informed(ctx, "Producer", info.Producer))
	say(e, "writtenWith", informed(ctx, "Creator", info.Creator))
	say(b, "title", informed(ctx, "Title", info.Title))
	say(b, "creator", informed(ctx, "Author", info.Author))
	say(b, "subject", informed(ctx, "Subject", info.Subject))
	say(b, "created", informed(ctx, "CreationDate", info.CreationDate))
	sayAll(b, "keywords", info.Keywords)
	return nil
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
	if err != nil || key != "CreationDate" {
		return text
	}
	at, ok := types.DateTime(text, true)
	if !ok {
		return ""
	}
	return types.DateString(at)
}
