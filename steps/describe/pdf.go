package describe

import (
	"fmt"
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
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
	info, err := api.PDFInfo(f, q.Name, nil, false, conf)
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
	say(e, "producer", info.Producer)
	say(e, "writtenWith", info.Creator)
	say(b, "title", info.Title)
	say(b, "creator", info.Author)
	say(b, "subject", info.Subject)
	say(b, "created", info.CreationDate)
	sayAll(b, "keywords", info.Keywords)
	return nil
}
