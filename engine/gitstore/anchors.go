package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

const (
	tagRefs     = "refs/tags/"
	anchorRefs  = tagRefs + layout.AnchorTags
	remoteTags  = "refs/bagpipe/at/" // with the remote's name: the anchors that it has
	verifyLines = 5                  // of what git says of a signature
)

// SignTag makes a tag of a commit of the workspace at root, signed by an SSH key: that of the
// file key, or of Git's user.signingKey. The key's secret comes from the file or an agent.
func SignTag(ctx context.Context, root, name string, commit Hash, who Signature, key, message string) error {
	args := []string{"-c", "gpg.format=ssh", "-c", "user.name=" + who.Name, "-c", "user.email=" + who.Email}
	if key != "" {
		abs, err := filepath.Abs(key)
		if err != nil {
			return err
		}
		args = append(args, "-c", "user.signingKey="+abs)
	}
	if _, err := gitSays(ctx, root, []byte(message), append(args, "tag", "--sign", "--file=-", "--cleanup=verbatim", name, commit.String())...); err != nil {
		if key == "" && strings.Contains(err.Error(), "user.signingkey") {
			return errors.New("no key is named, neither here (--key FILE) nor as user.signingKey of Git's configuration")
		}
		return err
	}
	// Git 2.39 makes an unsigned tag, and no error, where it finds no key.
	data, _, err := Object(ctx, root, "tag", tagRefs+name)
	if err != nil || bytes.Contains(data, []byte("-----BEGIN SSH SIGNATURE-----")) {
		return err
	}
	_, err = gitSays(ctx, root, nil, "tag", "--delete", name)
	return errors.Join(errors.New("git signed nothing; the key is not there, or no agent has it"), err)
}

// Anchor is a tag that stands for a history.
type Anchor struct {
	Name   string // anchor/…
	Object Hash   // the tag, or what it is instead
	Commit Hash   // zero: it is a tag of no commit
	Signed string // what git says of the signature where it does not vouch for it; "": it does
}

// Anchors lists the anchors of the workspace at root, by name, each verified by a file of
// allowed signers as ssh-keygen reads it.
func Anchors(ctx context.Context, root, signers string) ([]Anchor, error) {
	all, err := ListedAnchors(ctx, root, Hash{})
	for i := range all {
		all[i].Signed = verifyTag(ctx, root, all[i].Object, signers)
	}
	return all, err
}

// ListedAnchors is Anchors without a look at signatures; of those alone whose commit leads to a tip,
// unless that is zero.
func ListedAnchors(ctx context.Context, root string, tip Hash) (all []Anchor, err error) {
	args := []string{"for-each-ref", "--format=%(objectname) %(refname) %(*objecttype) %(*objectname)"}
	if !tip.IsZero() {
		args = append(args, "--merged="+tip.String())
	}
	out, err := gitSays(ctx, root, nil, append(args, anchorRefs)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a := Anchor{Name: strings.TrimPrefix(fields[1], tagRefs)}
		if a.Object, err = ParseHash(fields[0]); err != nil {
			return nil, err
		}
		if len(fields) == 4 && fields[2] == "commit" {
			if a.Commit, err = ParseHash(fields[3]); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// verifyTag says why a tag's signature does not count.
func verifyTag(ctx context.Context, root string, tag Hash, signers string) string {
	cmd := exec.CommandContext(ctx, "git", "--git-dir="+filepath.Join(root, layout.RepositoryDir), "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-tag", tag.String())
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	said, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.Join(lines[:min(len(lines), verifyLines)], "; ")
}

// Leads reports whether one commit leads to another, or is it.
func Leads(ctx context.Context, root string, from, to Hash) bool {
	_, err := gitSays(ctx, root, nil, "merge-base", "--is-ancestor", from.String(), to.String())
	return err == nil
}

// Newest gives those of some commits, at least one, that lead to no other of them.
func Newest(ctx context.Context, root string, commits []Hash) (newest []Hash, err error) {
	args := []string{"merge-base", "--independent"}
	for _, c := range commits {
		args = append(args, c.String())
	}
	out, err := gitSays(ctx, root, nil, args...)
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(out)) {
		h, err := ParseHash(name)
		if err != nil {
			return nil, err
		}
		newest = append(newest, h)
	}
	return newest, nil
}

// Object gives the bytes and the name of an object of the workspace at root, as git
// rev-parse finds it.
func Object(ctx context.Context, root, kind, rev string) (data []byte, name Hash, err error) {
	all, err := Objects(ctx, root, rev)
	if err != nil {
		return nil, name, err
	}
	if all[0].Kind != kind {
		return nil, name, fmt.Errorf("%s is a %s, and no %s", rev, all[0].Kind, kind)
	}
	return all[0].Data, all[0].Name, nil
}

// RawObject is an object of a repository as Git has it.
type RawObject struct {
	Kind string // commit, tree, blob or tag
	Name Hash
	Data []byte
}

// Objects gives the objects of the workspace at root as git rev-parse finds them, in the order of
// revs, all in one call of git. One that is not there is an error.
func Objects(ctx context.Context, root string, revs ...string) (all []RawObject, err error) {
	out, err := gitSays(ctx, root, []byte(strings.Join(revs, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	for _, rev := range revs {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(head))
		if len(fields) != 3 {
			return nil, fmt.Errorf("git cat-file: %s", head)
		}
		o := RawObject{Kind: fields[1]}
		o.Name, err = ParseHash(fields[0])
		size, errSize := strconv.Atoi(fields[2])
		if err = errors.Join(err, errSize); err != nil || size < 0 || size >= len(rest) {
			return nil, fmt.Errorf("git cat-file %s: %s: %w", rev, head, errors.Join(err, io.ErrUnexpectedEOF))
		}
		o.Data, out = rest[:size], rest[size+1:]
		all = append(all, o)
	}
	return all, nil
}

// takeAnchors brings a remote's anchors that this repository does not have. One that is here
// under its name stays as it is.
func takeAnchors(ctx context.Context, root, remote string) error {
	theirs, err := tagsBelow(ctx, root, remoteTags+remote+"/")
	if err != nil {
		return err
	}
	ours, err := tagsBelow(ctx, root, anchorRefs)
	if err != nil {
		return err
	}
	var in bytes.Buffer
	for name, hash := range theirs {
		if ours[name] == "" {
			fmt.Fprintf(&in, "create %s%s %s\n", anchorRefs, name, hash)
		}
	}
	if in.Len() == 0 {
		return nil
	}
	_, err = gitSays(ctx, root, in.Bytes(), "update-ref", "--stdin")
	return err
}

// newAnchors gives the anchors that a remote did not have when it was asked.
func newAnchors(ctx context.Context, root, remote string) (names []string, err error) {
	ours, err := tagsBelow(ctx, root, anchorRefs)
	if err != nil {
		return nil, err
	}
	theirs, err := tagsBelow(ctx, root, remoteTags+remote+"/")
	for name := range ours {
		if theirs[name] == "" {
			names = append(names, layout.AnchorTags+name)
		}
	}
	slices.Sort(names)
	return names, err
}

// tagsBelow gives the objects of references by the rest of their names.
func tagsBelow(ctx context.Context, root, prefix string) (map[string]string, error) {
	out, err := gitSays(ctx, root, nil, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[strings.TrimPrefix(name, prefix)] = hash
	}
	return found, nil
}
