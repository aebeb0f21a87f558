package fixity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/inbox"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: bytes come into a folder beside an item's own, which stays there where the way
// is cut, and is gone on with. What came is held against the committed digests (what was
// dropped against the manifest's, the object against the inventory, a bag of a step by
// itself); then each part is synced and gets its name by a rename, and a part that is here
// already stays. A crash leaves that folder, or some of the parts.

// payloadScratch is where bytes that come are, in the item's folder.
const payloadScratch = ".payload"

// Payload says what of an item's bytes is not here, by the committed records.
type Payload struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Missing    []string      `json:"missing"` // Source, Content
	Bytes      int64         `json:"bytes"`   // of them
	// Twin reports whether the bytes that are here are those of another version of the number, made at this site.
	Twin bool `json:"twin"`
}

// PayloadOf tells of one item. It looks for names, and reads no bytes but where two sites made a version each.
func PayloadOf(ctx context.Context, c *Checks, id layout.ItemID) (Payload, error) {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return Payload{}, err
	}
	r, err := c.read(v, id)
	if err != nil {
		return Payload{}, err
	}
	return payload(ctx, c, r)
}

func payload(ctx context.Context, c *Checks, r *record) (Payload, error) {
	m := r.Manifest
	p := Payload{Item: m.Item, Collection: m.Collection, Label: m.Label, Missing: []string{}}
	if m.Source.Place != nil || m.Source.Bare() {
		return p, nil
	}
	_, noSource := c.dropped(m)
	if m.Version > 1 && twins(r.Execution) {
		var err error
		if p.Twin, err = isTwin(ctx, c, r); p.Twin || err != nil {
			if noSource == nil {
				p.Missing, p.Bytes = append(p.Missing, Source), m.Source.Bytes
			}
			if r.inventory != nil && (r.unpacked() || noSource != nil) {
				p.Missing, p.Bytes = append(p.Missing, Content), p.Bytes+r.inventory.Bytes()
			}
			return p, err
		}
	}
	_, noObject := c.object(m)
	if noObject == nil && r.inventory != nil { // source/ may be there, and content/ not
		_, noObject = os.Lstat(filepath.Join(c.ledger.Path(layout.ItemDir(m.Item)), layout.ContentDir))
		if absent(noObject) && noSource == nil && r.unpacked() {
			noObject = fs.ErrNotExist
		} else {
			noObject = nil
		}
	}
	if absent(noSource) && folder.Freed(m, r.Execution) == "" && noObject != nil {
		p.Missing, p.Bytes = append(p.Missing, Source), m.Source.Bytes
	}
	if absent(noObject) && r.inventory != nil && folder.Freed(m, r.Execution) == "" && (r.unpacked() || absent(noSource)) {
		p.Missing, p.Bytes = append(p.Missing, Content), p.Bytes+r.inventory.Bytes()
	}
	return p, nil
}

// twins reports whether two sites each took in a version of one number: its workflow was begun twice.
func twins(x *state.Execution) bool {
	for _, w := range x.Workflows {
		for _, s := range w.Steps {
			begun := map[layout.Name]bool{}
			for _, a := range s.Attempts {
				if a.Claimed.IsZero() && a.Runner != "" && a.State == state.Completed {
					begun[state.SiteOf(a.Runner)] = true
				}
			}
			if len(begun) > 1 {
				return true
			}
		}
	}
	return false
}

// isTwin reports whether what is here of the item, which is read, is not what was dropped of the version in force, nor its object.
func isTwin(ctx context.Context, c *Checks, r *record) (bool, error) {
	source, err := c.dropped(r.Manifest)
	if err == nil {
		sum, err := inbox.Digest(ctx, source)
		return sum.Digest != r.Manifest.Source.Digest, err
	}
	content := filepath.Join(c.ledger.Path(layout.ItemDir(r.Manifest.Item)), layout.ContentDir)
	if !isThere(content) || r.inventory == nil {
		return false, nil
	}
	_, _, err = compare(ctx, content, nil, r.inventory, nil)
	var wrong damage
	if errors.As(err, &wrong) {
		return true, nil
	}
	return false, err
}

// unpacked reports whether the object is another than what was dropped.
func (r *record) unpacked() bool { return r.Manifest.Source.Kind == "archive" }

// Moved is what came, or went.
type Moved struct {
	Item       layout.ItemID `json:"item"`
	Parts      []string      `json:"parts"`
	Bytes      int64         `json:"bytes"`
	Place      string        `json:"place"`
	Unverified []string      `json:"unverified"` // no digest of it is committed
}

// FromDeposit asks PayloadGet for the item's deposited bag.
const FromDeposit = folder.FromDeposit

// PayloadGet brings the bytes of an item: from the folder of a workspace or of a backup, from
// HOST:FOLDER by rsync over ssh, or FromDeposit.
func PayloadGet(ctx context.Context, c *Checks, id layout.ItemID, from string) (out Moved, err error) {
	out = Moved{Item: id, Parts: []string{}, Unverified: []string{}, Place: from}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return out, err
	}
	r, err := c.read(v, id)
	if err != nil {
		return out, err
	}
	p, err := payload(ctx, c, r)
	if err != nil || len(p.Missing) == 0 {
		return out, err
	}
	if p.Twin { // they may be nowhere else
		return out, fault.New(fault.Refused, fmt.Sprintf("item %s: the %s of another version %d, which this site made, is in the place of what is to come", id.Short(), p.Missing[0], r.Manifest.Version), fault.Remedy{Verb: fault.AddVersion, Item: id})
	}
	dir := c.ledger.Path(layout.ItemDir(id))
	scratch := filepath.Join(dir, payloadScratch)
	if err := disk.MkdirAll(scratch, 0o750); err != nil {
		return out, err
	}
	unlock, err := disk.LockDir(scratch)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	switch host, path, far := farPlace(from); {
	case from == FromDeposit:
		err = fromDeposit(ctx, c, r, scratch)
	case far:
		err = rsync(ctx, host+":"+strings.TrimSuffix(path, "/")+"/"+layout.ItemDir(id)+"/", scratch+"/", parts)
	default:
		err = copyParts(ctx, filepath.Join(from, filepath.FromSlash(layout.ItemDir(id))), scratch)
	}
	if err != nil {
		return out, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	if err := verifyParts(ctx, c, r, scratch, &out); err != nil {
		var wrong damage
		if errors.As(err, &wrong) {
			err = fault.New(fault.Damaged, fmt.Sprintf("item %s: the files from %s are not those of the history: %s", id.Short(), from, wrong))
		}
		return out, errors.Join(err, disk.RemoveTree(scratch))
	}
	if len(out.Parts) == 0 {
		return out, errors.Join(fault.New(fault.NotFound, fmt.Sprintf("item %s: %s has no bytes of it", id.Short(), from)), disk.RemoveTree(scratch))
	}
	for _, part := range out.Parts {
		made, to := filepath.Join(scratch, part), filepath.Join(dir, part)
		if err := disk.SyncTree(made); err != nil {
			return out, err
		}
		if entries, err := os.ReadDir(to); err == nil && len(entries) == 0 {
			if err := os.Remove(to); err != nil {
				return out, err
			}
		}
		if err := disk.Rename(made, to); err != nil {
			return out, err
		}
	}
	return out, disk.RemoveTree(scratch)
}

// parts are the folders of an item that hold bytes.
var parts = []string{layout.SourceDir, layout.ContentDir, layout.DerivedDir}

// farPlace parts HOST:FOLDER, as rsync and scp read it: a colon before any slash.
func farPlace(place string) (host, path string, far bool) {
	host, path, far = strings.Cut(place, ":")
	return host, path, far && host != "" && !strings.Contains(host, "/")
}

// verifyParts says what of scratch is what the history has, and not here.
func verifyParts(ctx context.Context, c *Checks, r *record, scratch string, out *Moved) error {
	m, dir := r.Manifest, c.ledger.Path(layout.ItemDir(r.Manifest.Item))
	here := func(part string) bool {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		return err == nil && len(entries) > 0
	}
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return err
	}
	source := filepath.Join(scratch, layout.SourceDir, name)
	if _, err := os.Lstat(source); err == nil && !here(layout.SourceDir) {
		sum, err := inbox.Digest(ctx, source)
		switch {
		case err != nil:
			return unreadable(err)
		case sum.Digest != m.Source.Digest:
			return damage(layout.SourceDir + " has another digest")
		}
		out.Parts, out.Bytes = append(out.Parts, layout.SourceDir), out.Bytes+sum.Bytes
	}
	if content := filepath.Join(scratch, layout.ContentDir); isThere(content) && !here(layout.ContentDir) && r.inventory != nil {
		_, size, err := compare(ctx, content, nil, r.inventory, nil)
		if err != nil {
			return err
		}
		out.Parts, out.Bytes = append(out.Parts, layout.ContentDir), out.Bytes+size
	}
	if len(out.Parts) == 0 || here(layout.DerivedDir) || !isThere(filepath.Join(scratch, layout.DerivedDir)) {
		return nil
	}
	made, err := os.ReadDir(filepath.Join(scratch, layout.DerivedDir))
	for _, step := range made {
		bag := filepath.Join(scratch, layout.DerivedDir, step.Name())
		if _, noBag := os.Lstat(filepath.Join(bag, "bagit.txt")); noBag != nil {
			out.Unverified = append(out.Unverified, layout.DerivedDir+"/"+step.Name())
		} else if _, err := checkBag(ctx, bag, m.Item, nil); err != nil {
			return err
		}
	}
	out.Parts = append(out.Parts, layout.DerivedDir)
	return err
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fromDeposit brings the object out of the item's bag.
func fromDeposit(ctx context.Context, c *Checks, r *record, scratch string) (err error) {
	good, err := c.sound(ctx, r, max(r.Manifest.Version, 1), "", nil, "")
	if absent(err) {
		return fault.New(fault.NotFound, "no bag of it stands in this site's store or on its targets; one that another site deposited stands in that site's store")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, good.drop()) }()
	if r.inventory == nil {
		return fault.New(fault.Refused, "it has no inventory to check a copy by")
	}
	bag, content := filepath.Join(scratch, "bag"), filepath.Join(scratch, layout.ContentDir)
	if err := errors.Join(disk.RemoveTree(bag), disk.RemoveTree(content)); err != nil {
		return err
	}
	if _, _, err := (handing{c, r, nil}).bag(ctx, good.dir, bag); err != nil {
		return err
	}
	if err := unbag(bag, content, r.inventory); err != nil {
		return err
	}
	if err := disk.RemoveTree(bag); err != nil {
		return err
	}
	name, err := layout.DecodePath(r.Manifest.Source.Name)
	if err != nil {
		return err
	}
	dropped := content
	if r.Manifest.Source.Kind == "file" {
		dropped = filepath.Join(content, name)
	}
	if sum, err := inbox.Digest(ctx, dropped); err != nil || sum.Digest != r.Manifest.Source.Digest {
		return nil // it is the object as it was unpacked
	}
	source := filepath.Join(scratch, layout.SourceDir)
	if err := errors.Join(disk.RemoveTree(source), os.Mkdir(source, 0o755)); err != nil {
		return err
	}
	if err := os.Rename(dropped, filepath.Join(source, name)); err != nil {
		return err
	}
	return disk.RemoveTree(content)
}

// PayloadPut takes an item's bytes to the folder of a workspace or a backup, or to HOST:FOLDER
// by rsync over ssh. They are verified before they go; whoever gets them verifies them again.
func PayloadPut(ctx context.Context, c *Checks, id layout.ItemID, to string) (out Moved, err error) {
	out = Moved{Item: id, Parts: []string{}, Unverified: []string{}, Place: to}
	found, err := c.Check(ctx, id)
	if err != nil {
		return out, err
	}
	for _, copy := range []string{Source, Content} {
		if found.Copies[copy].Outcome == layout.FixityFailed {
			return out, fault.New(fault.Damaged, fmt.Sprintf("item %s: %s: %s", id.Short(), copy, found.Copies[copy].Message))
		}
	}
	dir := c.ledger.Path(layout.ItemDir(id))
	for _, part := range parts {
		if entries, err := os.ReadDir(filepath.Join(dir, part)); err == nil && len(entries) > 0 {
			out.Parts = append(out.Parts, part)
		}
	}
	out.Bytes = found.Copies[Source].Bytes + found.Copies[Content].Bytes
	if len(out.Parts) == 0 {
		return out, fault.New(fault.NotFound, fmt.Sprintf("item %s: none of its bytes are here", id.Short()))
	}
	if host, path, far := farPlace(to); far {
		return out, rsync(ctx, dir+"/", host+":"+strings.TrimSuffix(path, "/")+"/"+layout.ItemDir(id)+"/", out.Parts)
	}
	there := filepath.Join(to, filepath.FromSlash(layout.ItemDir(id)))
	scratch := filepath.Join(there, payloadScratch)
	if err := disk.MkdirAll(scratch, 0o750); err != nil {
		return out, err
	}
	if err := copyParts(ctx, dir, scratch); err != nil {
		return out, err
	}
	if err := verifyCopy(ctx, c, id, scratch); err != nil {
		return out, errors.Join(err, disk.RemoveTree(scratch))
	}
	for _, part := range out.Parts {
		if entries, err := os.ReadDir(filepath.Join(there, part)); err == nil && len(entries) > 0 {
			continue // it is there
		}
		if err := errors.Join(layout.RemoveIfThere(filepath.Join(there, part)), disk.SyncTree(filepath.Join(scratch, part))); err != nil {
			return out, err
		}
		if err := disk.Rename(filepath.Join(scratch, part), filepath.Join(there, part)); err != nil {
			return out, err
		}
	}
	return out, disk.RemoveTree(scratch)
}

// verifyCopy holds a copy of an item's parts against the history.
func verifyCopy(ctx context.Context, c *Checks, id layout.ItemID, scratch string) error {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return err
	}
	r, err := c.read(v, id)
	if err != nil {
		return err
	}
	name, err := layout.DecodePath(r.Manifest.Source.Name)
	if err != nil {
		return err
	}
	if source := filepath.Join(scratch, layout.SourceDir, name); isThere(source) {
		if sum, err := inbox.Digest(ctx, source); err != nil || sum.Digest != r.Manifest.Source.Digest {
			return errors.Join(err, fault.New(fault.Damaged, fmt.Sprintf("item %s: the copy is not what was dropped", id.Short())))
		}
	}
	if content := filepath.Join(scratch, layout.ContentDir); isThere(content) && r.inventory != nil {
		if _, _, err := compare(ctx, content, nil, r.inventory, nil); err != nil {
			return err
		}
	}
	return nil
}

// rsync brings some folders below from into to: what came of a file is gone on with, and
// whole files are passed over.
func rsync(ctx context.Context, from, to string, names []string) error {
	args := []string{"--recursive", "--times", "--links", "--partial-dir=.part", "--timeout=120", "--mkpath"}
	for _, name := range names {
		args = append(args, "--include=/"+name+"/***")
	}
	cmd := exec.CommandContext(ctx, "rsync", slices.Concat(args, []string{"--exclude=*", "--", from, to})...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if os.Getenv("RSYNC_RSH") == "" {
		cmd.Env = append(cmd.Env, "RSYNC_RSH=ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("rsync %s: %w: %s", from, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// copyParts copies the folders with bytes below from into to, but for files that a copy which
// was cut short has whole.
func copyParts(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.NotFound, fmt.Sprintf("%s is not there", layout.EncodePath(from)))
		}
		return err
	}
	for _, part := range parts {
		root := filepath.Join(from, part)
		if !isThere(root) {
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			made := filepath.Join(to, rel)
			switch {
			case d.IsDir():
				return os.MkdirAll(made, 0o755)
			case !d.Type().IsRegular():
				return damage(layout.EncodePath(filepath.ToSlash(rel)) + " is no regular file")
			}
			return copyWhole(path, made)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyWhole copies a file, unless a copy with its size and time is there.
func copyWhole(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if was, err := os.Lstat(to); err == nil && was.Size() == info.Size() && was.ModTime().Equal(info.ModTime()) {
		return nil
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
