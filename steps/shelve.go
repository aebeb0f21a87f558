package steps

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/layout"
	"bagpipe/steps/form"
	"bagpipe/steps/target"
)

// The parts of an item on an access target.
const (
	shelvedPart = "files"  // of the content
	publicPart  = "public" // what is told of it
)

// shelving are the parameters of the robot shelve.
type shelving struct {
	match, puids []string
	withdraw     bool
}

func shelveParams(with map[string]any) (s shelving, err error) {
	if s.match, err = stringsParam(with, "match"); err != nil {
		return s, err
	}
	for _, m := range s.match {
		if !layout.ValidPattern(m) || m == "" {
			return s, wrongParam("match", "%q is no pattern", m)
		}
	}
	if s.puids, err = stringsParam(with, "puids"); err != nil {
		return s, err
	}
	s.withdraw, err = accessParams(with)
	return s, err
}

// accessParams reads the parameters that shelve and publish share.
func accessParams(with map[string]any) (withdraw bool, err error) {
	if name, err := stringParam(with, "target"); err != nil {
		return false, err
	} else if _, err := layout.ParseName(name); err != nil {
		return false, wrongParam("target", "want the name of a target")
	}
	switch with["withdraw"] {
	case nil, false:
		return false, nil
	case true:
		return true, nil
	}
	return false, wrongParam("withdraw", "want true or false, got %v", with["withdraw"])
}

// wanted reports whether the rule names a file; without patterns and PUIDs it names all.
func (s *shelving) wanted(name string, f layout.InventoryFile) bool {
	if len(s.match) > 0 && !slices.ContainsFunc(s.match, func(m string) bool {
		return layout.MatchPattern(m, name) || layout.MatchPattern(m, filepath.Base(name))
	}) {
		return false
	}
	return len(s.puids) == 0 || slices.Contains(s.puids, f.PUID)
}

// shelve makes an access target hold the part of the content that a rule names, and no other
// file of the item. It is repeated for each version; withdraw takes all away.
func shelve(ctx context.Context, c *Call) (Result, error) {
	s, err := shelveParams(c.With)
	if err != nil {
		return Result{}, err
	}
	want := map[string]target.Shelved{}
	if !s.withdraw {
		if want, err = s.files(ctx, c); err != nil {
			return Result{}, err
		}
	}
	return c.hold(ctx, shelvedPart, want)
}

// files are those that the rule names, by the inventory.
func (s *shelving) files(ctx context.Context, c *Call) (map[string]target.Shelved, error) {
	if c.Inventory == nil {
		return nil, SystemFailure("there is no inventory to choose by; the inventory step makes it")
	}
	v, err := layout.DecodeInventory(c.Inventory)
	if err != nil {
		return nil, err
	}
	tree, err := object(ctx, c)
	if err != nil {
		return nil, failure(err)
	}
	want := map[string]target.Shelved{}
	for name, f := range v.Files {
		raw, err := layout.DecodePath(name)
		if err != nil {
			return nil, err
		}
		if s.wanted(raw, f) {
			want[raw] = target.Shelved{Size: f.Size, SHA512: f.SHA512, Open: openAt(tree.At(raw))}
		}
	}
	return want, nil
}

func openAt(path string) func(int64) (io.ReadCloser, error) {
	return func(offset int64) (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err == nil {
			_, err = f.Seek(offset, io.SeekStart)
		}
		return f, err
	}
}

// shelf opens the access target of the step.
func (c *Call) shelf() (target.Shelf, error) {
	name, _ := c.With["target"].(string)
	if c.Target == nil {
		return target.Shelf{}, SystemFailure("target %s cannot be opened here", name)
	}
	t, err := c.Target(name)
	if err != nil {
		return target.Shelf{}, err
	}
	s, is := target.ShelfOf(t)
	if !is {
		return s, SystemFailure("target %s holds bags as tars or OCFL objects; a target to read from has layout: bag", name)
	}
	return s, nil
}

// hold makes a part of the item hold files. A target that is down asks for a later call.
func (c *Call) hold(ctx context.Context, part string, want map[string]target.Shelved) (Result, error) {
	s, err := c.shelf()
	var done target.Shelving
	if err == nil {
		done, err = s.Hold(ctx, c.Item, part, want)
	}
	if err != nil {
		return Result{}, c.accessFailure(err)
	}
	name, _ := c.With["target"].(string)
	if len(want) == 0 {
		return Result{Message: fmt.Sprintf("nothing of it is in %s/ on %s; %s removed", part, name, layout.Count(done.Removed, "file"))}, nil
	}
	return Result{Message: fmt.Sprintf("%s, %s, verified in %s:%s/%s; %d sent, %d there already, %d removed",
		layout.Count(len(want), "file"), layout.Count(done.Bytes, "byte"), name, target.Place(c.Item, 1), part, done.Sent, done.Kept, done.Removed)}, nil
}

func (c *Call) accessFailure(err error) error {
	var down *target.Down
	if errors.As(err, &down) {
		return &Later{Reason: fmt.Sprintf("target %s: %v", c.With["target"], err)}
	}
	return failure(err)
}

// publishParams reads the parameters of the robot publish.
func publishParams(with map[string]any) (p form.Public, withdraw bool, err error) {
	fields, err := stringsParam(with, "fields")
	if err != nil {
		return p, false, err
	}
	given, is := with["dc"].(map[string]any)
	if _, there := with["dc"]; there && !is {
		return p, false, wrongParam("dc", "want the paths of fields by element, as in title: metadata.Title")
	}
	dc := map[string][]string{}
	for element, paths := range given {
		dc[element] = values(paths)
	}
	if p, err = form.NewPublic(fields, dc); err != nil {
		return p, false, wrongParam("dc", "%v", err)
	}
	withdraw, err = accessParams(with)
	return p, withdraw, err
}

// publish makes an access target hold the public form of an item: manifest fields as JSON, as
// Dublin Core, and the list of the files that shelve put there. withdraw takes it away.
func publish(ctx context.Context, c *Call) (Result, error) {
	p, withdraw, err := publishParams(c.With)
	if err != nil {
		return Result{}, err
	}
	want := map[string]target.Shelved{}
	if !withdraw {
		s, err := c.shelf()
		if err != nil {
			return Result{}, c.accessFailure(err)
		}
		names := map[string]int64{}
		err = s.Held(ctx, c.Item, shelvedPart, func(name string, size int64) error {
			names[name] = size
			return nil
		})
		if err != nil {
			return Result{}, c.accessFailure(err)
		}
		record, err := p.Record(c.Manifest, c.Inventory, names)
		if err != nil {
			return Result{}, err
		}
		want["record.json"], want["dublin-core.xml"] = inMemory(record), inMemory(p.DublinCore(c.Item, c.Manifest))
	}
	return c.hold(ctx, publicPart, want)
}

func inMemory(data []byte) target.Shelved {
	sum := sha512.Sum512(data)
	return target.Shelved{Size: int64(len(data)), SHA512: hex.EncodeToString(sum[:]), Open: func(offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data[offset:])), nil
	}}
}
