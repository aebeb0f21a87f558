package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"bagpipe/layout"
	"bagpipe/steps/decoder"

	"github.com/richardlehane/siegfried"
	"github.com/richardlehane/siegfried/pkg/static"
)

// Request names a file to identify. Name is the name it has in the item.
type Request struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	Signatures string `json:"signatures"` // a signature file; "": the embedded signatures
}

// Format is what a file was identified as. Of a file that no signature fits ID is empty
// and Warning says so.
type Format struct {
	ID      string `json:"id"`   // PUID: fmt/353
	Name    string `json:"name"` // with its version: Acrobat PDF 1.4
	Basis   string `json:"basis"`
	Warning string `json:"warning"`
}

// Answer is the format, and the signatures that were asked, or why these cannot be read: that says nothing
// of the file.
type Answer struct {
	Format
	Signatures string `json:"signatures"`
	Unreadable string `json:"unreadable,omitempty"`
}

// Reader identifies files by one set of signatures.
type Reader struct {
	sf   *siegfried.Siegfried
	Name string // of the signatures: DROID_SignatureFile_V119.xml; container-signature-20240715.xml
}

// Load reads a signature file; "" stands for the embedded signatures.
func Load(file string) (r *Reader, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read signature file %s: it is damaged (%v)", file, p)
		}
	}()
	sf := (*siegfried.Siegfried)(nil)
	if file == "" {
		sf = static.New()
	} else {
		if sf, err = siegfried.Load(file); err != nil {
			if _, lacks := os.Stat(file); lacks != nil {
				return nil, fmt.Errorf("read signature file %s: %w", file, errors.Unwrap(lacks))
			}
			said, _, _ := strings.Cut(err.Error(), "; try running") // a program of the library's
			return nil, fmt.Errorf("read signature file %s: %s", file, said)
		}
	}
	if sf == nil || len(sf.Identifiers()) == 0 {
		return nil, errors.New("the signature file holds no signatures")
	}
	r = &Reader{sf: sf}
	for _, id := range sf.Identifiers() {
		if id[0] == "pronom" {
			r.Name = id[1]
		}
	}
	if r.Name == "" {
		return nil, fmt.Errorf("signature file %s: it holds no signatures of PRONOM", file)
	}
	return r, nil
}

// Identify gives the format of the file at path.
func (r *Reader) Identify(path, name string) (Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return Format{}, err
	}
	defer f.Close()
	found, err := r.sf.Identify(f, name, "")
	if len(found) == 0 {
		return Format{}, fmt.Errorf("identify: %w", err)
	}
	var one Format
	var others []string
	for _, id := range found {
		values := map[string]string{}
		for _, pair := range r.sf.Label(id) {
			values[pair[0]] = pair[1]
		}
		switch {
		case values["namespace"] != "pronom":
		case one == Format{}:
			one = Format{ID: values["id"], Basis: values["basis"], Warning: values["warning"],
				Name: strings.TrimSpace(values["format"] + " " + values["version"])}
		default:
			others = append(others, values["id"])
		}
	}
	if one.ID == "UNKNOWN" {
		one.ID = ""
	}
	if len(others) > 0 {
		one.Warning = strings.TrimPrefix(one.Warning+"; it may also be "+strings.Join(others, ", "), "; ")
	}
	return one, nil
}

// NewWork makes the work of a decoding process; it takes a Request, its path as layout.EncodePath writes it, and gives an Answer.
func NewWork() (decoder.Work, error) {
	var r *Reader
	from := "\x00"
	return func(request json.RawMessage) (any, error) {
		var q Request
		err := json.Unmarshal(request, &q)
		if err == nil {
			q.Path, err = layout.DecodePath(q.Path)
		}
		if err != nil {
			return nil, err
		}
		if q.Signatures != from {
			loaded, err := Load(q.Signatures)
			if err != nil {
				return Answer{Unreadable: err.Error()}, nil
			}
			r, from = loaded, q.Signatures
		}
		f, err := r.Identify(q.Path, q.Name)
		return Answer{Format: f, Signatures: r.Name}, err
	}, nil
}
