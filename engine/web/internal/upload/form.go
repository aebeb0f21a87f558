package upload

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// pause is how long nothing need come of an upload that is under way.
const pause = time.Minute

// Form takes the files of a form in as one drop.
func (u *Uploads) Form(w http.ResponseWriter, r *http.Request) error {
	if _, err := u.d.Acts(r.Context(), access.Operator); err != nil {
		return err
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Time{}) // a writer of tests has none
	r.Body = moving{r.Body, c}
	body, err := r.MultipartReader()
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	name, err := u.draw()
	if err != nil {
		return err
	}
	f := form{u: u, r: r, id: name, begun: u.d.Now()}
	at, err := f.take(body)
	_ = c.SetWriteDeadline(u.d.Now().Add(pause))
	if f.set.dir != "" {
		err = errors.Join(err, os.RemoveAll(f.set.dir)) // empty, when it was published
	}
	if err == nil {
		u.d.Log.Info("upload", "drop", at, "files", len(f.names), "name", desk.Who(r.Context()).Name, "from", r.RemoteAddr)
	}
	return err
}

// moving lets a body be read for as long as something comes.
type moving struct {
	io.ReadCloser
	c *http.ResponseController
}

func (m moving) Read(p []byte) (int, error) {
	_ = m.c.SetReadDeadline(time.Now().Add(pause)) // a writer of tests has none
	return m.ReadCloser.Read(p)
}

type form struct {
	u          *Uploads
	r          *http.Request
	id         string // of the set
	begun      time.Time
	set        set
	collection layout.Name
	name       string // of the drop; "": of its one file
	names      []string
}

// take writes the files, and publishes them.
func (f *form) take(body *multipart.Reader) (string, error) {
	for {
		part, err := body.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fault.New(fault.Invalid, "the upload broke off: "+err.Error())
		}
		if part.FileName() == "" {
			err = f.field(part)
		} else {
			err = f.file(part)
		}
		if err != nil {
			return "", err
		}
	}
	if len(f.names) == 0 {
		return "", fault.New(fault.Invalid, "No file was chosen.")
	}
	alone := ""
	switch {
	case len(f.names) == 1 && f.name == "":
		f.name, alone = f.names[0], f.names[0]
	case f.name == "":
		f.name = "upload-" + f.begun.UTC().Format("20060102-150405")
	}
	if err := f.u.checkDrop(f.collection, f.name); err != nil {
		return "", err
	}
	f.u.mu.Lock()
	defer f.u.mu.Unlock()
	return f.set.publish(f.name, alone)
}

func (f *form) field(part *multipart.Part) error {
	const most = 1 << 12
	data, err := io.ReadAll(io.LimitReader(part, most))
	if err != nil {
		return err
	}
	switch part.FormName() {
	case "collection":
		if f.collection, err = layout.ParseName(string(data)); err != nil {
			return fault.New(fault.Invalid, err.Error())
		}
		if who := desk.Who(f.r.Context()); !who.Reaches(string(f.collection)) {
			return desk.NeedsAll(who)
		}
	case "name":
		f.name = string(data)
	}
	return nil
}

func (f *form) file(part *multipart.Part) error {
	name := filepath.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
	if err := checkName(name); err != nil {
		return err
	}
	if f.set.dir == "" {
		if f.collection == "" {
			return fault.New(fault.Invalid, "The collection must stand before the files.")
		}
		f.set = f.u.set(f.collection, f.id)
		if err := f.u.room(f.set, f.r.ContentLength); err != nil {
			return err
		}
		if err := f.set.begin(); err != nil {
			return err
		}
	}
	to, err := os.OpenFile(filepath.Join(f.set.dir, dropDir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o660)
	if err != nil {
		return fault.New(fault.Invalid, fmt.Sprintf("two files are called %s", name))
	}
	_, err = disk.Behind(to, 0, part)
	f.names = append(f.names, name)
	return errors.Join(err, to.Close())
}
