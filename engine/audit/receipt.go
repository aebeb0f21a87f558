package audit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// howTo stands in a receipt; %[1]s is the commit, %[2]s the item's folder, %[3]s the line that
// verifies the anchor.
const howTo = `
How to verify it, in an empty folder, with sh, git, awk and base64:

  git init -q --bare v
  awk '/^-- /{n++; f="v/part" n; print $2, $3, f > "v/parts"; next} n{print > f}' RECEIPT
  while read kind name file; do
    test $kind = sums && continue
    test "$(base64 -d $file | git --git-dir v hash-object -w -t $kind --stdin)" = $name || echo "WRONG: $name"
  done < v/parts
%[3]s  git --git-dir v ls-tree %[1]s:%[2]s/
  git --git-dir v show %[1]s:%[2]s/execution.json

%[4]sNothing may be WRONG. Each object is named by the digest of its bytes; the commit names the root
folder, and each folder the next. Ask where you trust whoever answers, such as in a clone made
long ago, whether that commit was in the history.
`

// howToSum stands in a receipt whose anchor states a sum of all records.
const howToSum = `The same by SHA-256 alone, with sha256sum; the anchor states %[1]s:

  want=%[1]s
  while read kind name file; do
    test $kind = sums || continue
    test -f v/list && want=$(sed -n "s|  ${name##*/}\$||p" v/list)
    base64 -d $file > v/list
    test "$(sha256sum < v/list | cut -c1-64)" = "$want" || echo "WRONG: sums of $name"
  done < v/parts
  for f in manifest.json execution.json; do
    git --git-dir v show %[2]s:%[3]s/$f | sha256sum | cut -c1-64 | grep -q -F -f - v/list || echo "WRONG: $f"
  done

`

// Receipt writes a text by which anybody can prove, with the history or without it, what was
// recorded of an item at the newest anchor, or at the tip where no anchor has the item. Of a
// retired item the commit where its records last stood is taken for the tip.
func (a *Auditor) Receipt(ctx context.Context, id layout.ItemID, w io.Writer) error {
	at, anchor, err := a.provenAt(ctx, id)
	if err != nil {
		return err
	}
	f, err := ledger.ReadRecords(at, id)
	if err != nil {
		return err
	}
	if f.Absent() {
		return ledger.NoItem(string(id))
	}
	r := &receipt{w: w}
	var revs []string
	if anchor.Name != "" {
		revs = append(revs, anchor.Object.String())
	}
	revs = append(revs, at.Commit().String(), at.Tree().String())
	dir := layout.ItemDir(id)
	for i := range len(dir) + 1 {
		if i == len(dir) || dir[i] == '/' {
			revs = append(revs, at.Commit().String()+":"+dir[:i])
		}
	}
	for _, file := range receiptFiles(f) {
		revs = append(revs, at.Commit().String()+":"+dir+"/"+file.name)
	}
	objects, err := gitstore.Objects(ctx, a.ledger.Root, revs...)
	if err != nil {
		return err
	}
	sum, signer := "", ""
	if anchor.Name != "" {
		if sum, err = a.stated(ctx, anchor); err == nil {
			signer, err = a.signerOf(objects[0].Data)
		}
		if err != nil {
			return err
		}
	}
	r.head(id, at, anchor, f, sum, signer)
	for _, o := range objects {
		r.encoded(o.Kind, o.Name.String(), o.Data)
	}
	if sum != "" {
		s := newSums(a.ledger, at)
		for i := range len(dir) + 1 {
			if i != len(dir) && dir[i] != '/' {
				continue
			}
			text, err := s.listing(dir[:i])
			if err != nil {
				return err
			}
			r.encoded("sums", dir[:i], text)
		}
	}
	return r.err
}

// provenAt gives the commit whose records of an item a receipt is of, and its anchor: the last
// anchor that has the item; without one the tip, and where the item is retired the commit at
// which its records last stood.
func (a *Auditor) provenAt(ctx context.Context, id layout.ItemID) (at gitstore.View, anchor gitstore.Anchor, err error) {
	if at, err = a.ledger.Store.Tip(); err != nil {
		return at, anchor, err
	}
	last, retired, err := ledger.Stood(a.ledger, at, id)
	if err != nil {
		return at, anchor, err
	}
	f, err := ledger.ReadRecords(at, id)
	if err != nil {
		return at, anchor, err
	}
	if retired && f.Absent() {
		at = last
	}
	if anchor, err = a.lastAnchor(ctx, at.Commit()); err != nil || anchor.Name == "" {
		return at, anchor, err
	}
	anchored, err := a.ledger.Store.At(anchor.Commit)
	if err != nil {
		return at, anchor, err
	}
	if _, err := anchored.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON); errors.Is(err, fs.ErrNotExist) {
		return at, gitstore.Anchor{}, nil // the item came later
	}
	return anchored, anchor, nil
}

type recordFile struct {
	name string
	data []byte
}

func receiptFiles(f ledger.Records) (files []recordFile) {
	for _, file := range []recordFile{{layout.ManifestJSON, f.Manifest}, {layout.ExecutionJSON, f.Execution}, {layout.InventoryJSON, f.Inventory}, {layout.DepositsJSON, f.Deposits}} {
		if file.data != nil {
			files = append(files, file)
		}
	}
	return files
}

// receipt writes; after an error nothing more.
type receipt struct {
	w   io.Writer
	err error
}

func (r *receipt) say(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, format, args...)
	}
}

// signerOf says whose key signed a tag.
func (a *Auditor) signerOf(tag []byte) (string, error) {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	list, err := ledger.ReadOptional(v, layout.SignersFile)
	if err != nil {
		return "", err
	}
	payload, armored := trust.SplitTag(tag)
	who, key, err := trust.ParseSigners(list).Vouch(payload, armored)
	switch {
	case err == nil:
		return fmt.Sprintf("by key %s of %s", key, ledger.Printable(ledger.OneLine(who, 200))), nil
	case key != "":
		return fmt.Sprintf("by key %s, which is not listed in %s", key, layout.SignersFile), nil
	}
	return "by a key that is no SSH key, or not soundly", nil
}

func (r *receipt) head(id layout.ItemID, at gitstore.View, anchor gitstore.Anchor, f ledger.Records, sum, signer string) {
	r.say("Bagpipe receipt of item %s\n\nIts records stand in %s of commit\n%s", id, layout.ItemDir(id), at.Commit())
	verify := ""
	if anchor.Name == "" {
		r.say(",\nwhich no anchor covers.\n")
	} else {
		r.say(",\nwhich is signed by tag %s,\n%s.\n", anchor.Name, signer)
		verify = fmt.Sprintf("  git --git-dir v -c gpg.format=ssh -c gpg.ssh.allowedSignersFile=SIGNERS verify-tag %s\n  git --git-dir v rev-parse %s^{commit}\n", anchor.Object, anchor.Object)
	}
	r.say("\nSHA-256 of the records:\n")
	for _, file := range receiptFiles(f) {
		r.say("%x  %s\n", sha256.Sum256(file.data), file.name)
	}
	bySum := ""
	if sum != "" {
		bySum = fmt.Sprintf(howToSum, sum, at.Commit(), layout.ItemDir(id))
	}
	r.say(howTo, at.Commit(), layout.ItemDir(id), verify, bySum)
}

// encoded writes a part in base64.
func (r *receipt) encoded(kind, name string, data []byte) {
	r.say("\n-- %s %s\n", kind, name)
	const width = 76
	for text := base64.StdEncoding.EncodeToString(data); len(text) > 0 && r.err == nil; text = text[min(width, len(text)):] {
		r.say("%s\n", text[:min(width, len(text))])
	}
}
