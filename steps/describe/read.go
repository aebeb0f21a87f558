package describe

import (
	"encoding/json"
	"fmt"

	"bagpipe/layout"
	"bagpipe/steps/decoder"
)

// Read reads one file.
func Read(q Request) (*Facts, error) {
	f := &Facts{Kind: KindOf(q.Name), Entity: map[string]any{}, Business: map[string]any{}}
	read := map[string]func(Request, *Facts) error{Raster: readTIFF, Vector: readShapefile, Image: readImage, Document: readPDF,
		Audio: readMedia, Video: readMedia, Metadata: readXML}[f.Kind]
	if read == nil {
		return nil, fmt.Errorf("%s is of no kind that is read", q.Name)
	}
	if err := read(q, f); err != nil {
		return f, err
	}
	f.notToCome(q.Now)
	return f, nil
}

// NewWork makes the work of a decoding process; it takes a Request and gives Facts.
func NewWork() (decoder.Work, error) {
	return func(request json.RawMessage) (any, error) {
		var q Request
		err := json.Unmarshal(request, &q)
		if err == nil {
			q.Path, err = layout.DecodePath(q.Path)
		}
		if err != nil {
			return nil, err
		}
		for ending, file := range q.Beside {
			if q.Beside[ending], err = layout.DecodePath(file); err != nil {
				return nil, err
			}
		}
		return Read(q)
	}, nil
}
