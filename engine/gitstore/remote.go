package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore/internal/call"
	"bagpipe/layout"
)

// Folders lists what stands in a folder of the tip of the workspace at root, as paths.
func Folders(ctx context.Context, root, dir string) (paths []string, err error) {
	out, err := gitSays(ctx, root, nil, "ls-tree", "-d", "-z", "--name-only", "HEAD", dir+"/")
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// AddRemote names an address that the workspace at root syncs with. One that is a path of
// this machine is kept whole, as Git asks it from the repository's folder.
func AddRemote(ctx context.Context, root, name, address string) error {
	if !strings.Contains(address, ":") {
		abs, err := filepath.Abs(address)
		if err != nil {
			return err
		}
		address = abs
	}
	there, err := RemoteURLs(ctx, root)
	if err != nil {
		return err
	}
	if old, is := there[name]; is {
		if old == address {
			return nil
		}
		return fault.New(fault.Refused, fmt.Sprintf("remote %s is there: %s", name, Redacted(old)), fault.Remedy{Verb: fault.RemoveRemote, Name: name})
	}
	_, err = gitSays(ctx, root, nil, "remote", "add", "--", name, address)
	return err
}

// RemoveRemote forgets a remote, and what was fetched from it.
func RemoveRemote(ctx context.Context, root, name string) error {
	there, err := RemoteURLs(ctx, root)
	if err != nil {
		return err
	}
	if _, is := there[name]; !is {
		return fault.Unknown("remote", name, "", maps.Keys(there))
	}
	_, err = gitSays(ctx, root, nil, "remote", "remove", "--", name)
	return err
}

// Redacted is an address without the password that may stand in it.
func Redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return u.Redacted()
	}
	return address
}

// RemoteURLs gives the addresses of the remotes of the workspace at root, by their names.
func RemoteURLs(ctx context.Context, root string) (map[string]string, error) {
	names, err := Remotes(ctx, root)
	urls := map[string]string{}
	for _, name := range names {
		out, err := gitSays(ctx, root, nil, "remote", "get-url", "--", name)
		if err != nil {
			return nil, err
		}
		urls[name] = strings.TrimSpace(string(out))
	}
	return urls, err
}

// Remotes lists the names of the remotes of the workspace at root.
func Remotes(ctx context.Context, root string) ([]string, error) {
	out, err := gitSays(ctx, root, nil, "remote")
	return strings.Fields(string(out)), err
}

// askRemote runs a git program that asks a remote: without prompts, and no longer than it says something. Beside a record that it can be
// stored as a difference from, as git orders them, there mostly stands its version before: to try two others in place
// of ten takes 2 s in place of 3 for 10,000 transitions, and makes a pack larger by 0.6 in a hundred.
func askRemote(ctx context.Context, root string, silence time.Duration, args ...string) ([]byte, error) {
	var out bytes.Buffer
	said, err := call.Run(ctx, silence, root, unprompted(), &out, slices.Concat([]string{"--git-dir=" + filepath.Join(root, layout.RepositoryDir),
		"-c", "fetch.fsckObjects=true", "-c", "fetch.unpackLimit=1", // of a pack git shows each second how much came, of objects one by one it does not
		"-c", "core.fsync=all", "-c", "credential.interactive=false", "-c", "pack.window=2"}, args)...)
	if err != nil {
		return out.Bytes(), &refusedError{call: args[0], why: err, said: said}
	}
	if strings.Contains(said, "shallow roots are not allowed") { // git fetch took nothing, and calls that a success
		return out.Bytes(), errShallow
	}
	return out.Bytes(), nil
}

// unprompted is the environment of a git that asks a remote, and nobody here.
func unprompted() []string {
	env := append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
	if os.Getenv("GIT_SSH_COMMAND") == "" {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15")
	}
	return env
}

var errShallow = fault.New(fault.Refused, "its repository is shallow: it lacks the older part of the history, so that nothing is taken from it or pushed to it")

// refusedError is a call of git that ended badly, with what git said.
type refusedError struct {
	call, said string
	why        error
}

func (e *refusedError) Error() string {
	said := gitsReason(e.said)
	if call.GivenUp(e.why) || said == "" { // git says that it was ended
		return fmt.Sprintf("git %s: %v", e.call, e.why)
	}
	return fmt.Sprintf("git %s: %v: %s", e.call, e.why, said)
}

func (e *refusedError) Unwrap() error { return e.why }

// rewritten lists the branches that git did not take, as they do not follow on what was fetched before; only: git
// complains of nothing else.
func (e *refusedError) rewritten() (branches []string, only bool) {
	rest := ""
	for line := range strings.Lines(e.said) {
		if branch, rejected := strings.CutPrefix(strings.TrimSpace(line), "! [rejected]"); rejected {
			name, _, _ := strings.Cut(strings.TrimSpace(branch), " ")
			branches = append(branches, name)
			continue
		}
		rest += line
	}
	return branches, gitsReason(rest) == ""
}

// gitsReason is what git said went wrong, in one line.
func gitsReason(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "fatal: "), "error: ")
		switch {
		case strings.HasPrefix(line, "From "), strings.Contains(line, " -> "): // what was fetched
		case line == "", line == "Please make sure you have the correct access rights", line == "and the repository exists.":
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// saysFull reports whether git ended as there was no room.
func saysFull(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "no space left") || strings.Contains(said, "diskspace")
}

// Fetched is what a remote has: the tips of its branches main and site/*, by name. Of those that were Rewritten there
// the tip is that which was fetched before.
type Fetched struct {
	Tips      map[string]Hash
	Rewritten []string
}

// Fetch brings the branches main, site/* and for/* of a remote, and forgets those that are gone there. own is the branch
// of this site, which is taken as it stands there: nobody but this site puts it right.
// A remote that says nothing for the time silence is given up; 0 stands for two minutes.
func Fetch(ctx context.Context, root, remote, own string, silence time.Duration) (f Fetched, err error) {
	at := remoteBranches + remote + "/"
	if err := dropDeadLocks(root, at, ownRefs, anchorRefs); err != nil {
		return f, err
	}
	ask := func(refs ...string) error {
		return cleared(root, func() error {
			_, err := askRemote(ctx, root, silence, slices.Concat([]string{"fetch", "--prune", "--progress", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--", remote}, refs)...)
			return err
		})
	}
	failed := ask("+refs/heads/main*:"+at+"main*", "refs/heads/site/*:"+at+"site/*",
		"+"+anchorRefs+"*:"+remoteTags+remote+"/*", "+"+offerRefs+"*:"+remoteOffers+remote+"/*")
	if refused, is := errors.AsType[*refusedError](failed); is {
		rewritten, only := refused.rewritten()
		if only && len(rewritten) > 0 {
			failed = nil
		}
		if i := slices.Index(rewritten, own); i >= 0 {
			rewritten = slices.Delete(rewritten, i, i+1)
			failed = errors.Join(failed, ask("+refs/heads/"+own+":"+at+own))
		}
		f.Rewritten = rewritten
	}
	if err := takeAnchors(ctx, root, remote); err != nil {
		return f, err
	}
	out, err := gitSays(ctx, root, nil, "for-each-ref", "--format=%(objectname) %(refname)", at)
	if err != nil {
		return f, err
	}
	f.Tips = map[string]Hash{}
	for line := range strings.Lines(string(out)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		h, err := ParseHash(hash)
		if err != nil {
			return f, err
		}
		if name = strings.TrimPrefix(name, at); name == "main" || strings.HasPrefix(name, layout.SitesBranches) {
			f.Tips[name] = h
		}
	}
	return f, failed
}

const (
	remoteBranches = "refs/remotes/"
	ownRefs        = "refs/bagpipe/" // what this repository alone has
)

// deadAfter is how old a lock is that no living git holds: git holds one while it writes a
// line.
const deadAfter = time.Minute

// dropDeadLocks removes the locks on refs below the folders that a git which was killed left:
// each fetch and push would be refused for good.
func dropDeadLocks(root string, below ...string) error {
	for _, dir := range below {
		err := filepath.WalkDir(filepath.Join(root, layout.RepositoryDir, filepath.FromSlash(dir)), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ".lock") {
				info, errInfo := e.Info()
				if err = errInfo; err == nil && time.Since(info.ModTime()) > deadAfter {
					err = os.Remove(path)
				}
			}
			if errors.Is(err, fs.ErrNotExist) { // none was fetched yet, or another removed it
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look for locks of dead gits: %w", err)
		}
	}
	return nil
}

// Push writes the branch to branches of a remote, and the anchors that the remote did not have
// when it was fetched from; never by force. It gives those that the remote took, and why those were refused that
// were, by name.
func Push(ctx context.Context, root, remote string, silence time.Duration, branches ...string) (took []string, refused map[string]string, err error) {
	refused = map[string]string{}
	anchors, err := newAnchors(ctx, root, remote)
	if err != nil || len(branches)+len(anchors) == 0 {
		return nil, refused, err
	}
	args := []string{"push", "--porcelain", "--progress", "--no-follow-tags", "--", remote}
	for _, b := range branches {
		args = append(args, "HEAD:refs/heads/"+b)
	}
	for _, a := range anchors {
		args = append(args, tagRefs+a+":"+tagRefs+a)
	}
	out, err := askRemote(ctx, root, silence, args...)
	words, there := "", map[string]bool{}
	if of, is := errors.AsType[*refusedError](err); is {
		words = remoteWords(of.said)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t") // flag, from:to, summary
		if len(fields) != 3 {
			continue
		}
		_, to, _ := strings.Cut(fields[1], ":")
		to = strings.TrimPrefix(strings.TrimPrefix(to, "refs/heads/"), tagRefs)
		if fields[0] == "!" {
			refused[to] = fields[2] + words
		} else {
			there[to] = true
		}
	}
	if len(there)+len(refused) > 0 {
		err = nil
	}
	return slices.DeleteFunc(slices.Concat(branches, anchors), func(name string) bool { return !there[name] }), refused, err
}

// remoteWords is what the remote itself said, such as its hooks, to be put after Git's summary.
func remoteWords(said string) string {
	var words []string
	for line := range strings.Lines(said) {
		if word, is := strings.CutPrefix(line, "remote: "); is && strings.TrimSpace(word) != "" {
			words = append(words, strings.TrimSpace(word))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words[:min(len(words), mostWords)], "; ")
}

// mostWords bounds the lines of a remote that are told.
const mostWords = 5

// MergeLines unites two texts by lines, three-way; clean is false where both changed the same lines,
// and stand between Git's marks, with the names of the two sides.
func MergeLines(ctx context.Context, base, a, b []byte, nameA, nameB string) (united []byte, clean bool, err error) {
	dir, err := os.MkdirTemp("", "bagpipe-join-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(dir)
	args := []string{"-c", "merge.conflictStyle=merge", "merge-file", "-p", "--quiet", "-L", nameA, "-L", "base", "-L", nameB}
	for i, data := range [][]byte{a, base, b} {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, false, err
		}
		args = append(args, name)
	}
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return out, false, nil
	}
	return out, err == nil, err
}
