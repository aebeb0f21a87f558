package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// shellText is the command of a remedy; empty: there is none.
func shellText(r fault.Remedy) string {
	item := r.Item.Short()
	step := strings.TrimPrefix(r.Run+"/"+string(r.Step), "/")
	batch := ""
	if r.Batch != "" {
		batch = "--batch " + string(r.Batch)
	}
	words := map[fault.Verb][]string{
		fault.Run:             {"bagpipe run"},
		fault.Start:           {"bagpipe start", item, r.Run},
		fault.Release:         {"bagpipe release", item},
		fault.Mend:            {"bagpipe fixity run --mend", item},
		fault.PutBackCopy:     {"bagpipe fixity run --mend", item},
		fault.PutBack:         {"bagpipe fixity run --mend", item},
		fault.GetPayload:      {"bagpipe payload get", item, "--from", cmp.Or(r.From, "PLACE")},
		fault.ShowConflict:    {"bagpipe conflict show", item},
		fault.Recall:          {"bagpipe recall", item},
		fault.Activate:        {"bagpipe workflow activate", item, r.Run},
		fault.Deactivate:      {"bagpipe workflow deactivate", item, r.Run},
		fault.Retry:           {"bagpipe step retry", item, step},
		fault.Complete:        {"bagpipe step complete", item, step},
		fault.Skip:            {"bagpipe step skip", item, step},
		fault.Enable:          {"bagpipe step enable", step},
		fault.CloseBatch:      {"bagpipe batch close", r.Name},
		fault.Init:            {"bagpipe init DIR"},
		fault.CheckSettings:   {"bagpipe check", shellWord(r.Name)},
		fault.ActAs:           {"sudo -u", shellWord(r.Account), "bagpipe -C", shellWord(r.Name), "…"},
		fault.Why:             {"bagpipe why", item},
		fault.Show:            {"bagpipe show", item},
		fault.Status:          {"bagpipe status"},
		fault.ShowBatch:       {"bagpipe batch show", r.Name},
		fault.ShowWorkflow:    {"bagpipe workflow show", cmp.Or(r.Run, "NAME")},
		fault.ShowQueue:       {"bagpipe queue", step},
		fault.ShowFailures:    {"bagpipe failures --step", string(r.Step)},
		fault.ListItems:       {"bagpipe items"},
		fault.ListRuns:        {"bagpipe items --workflow", r.Run},
		fault.ListRunning:     {"bagpipe items --workflow", r.Run, "--step", string(r.Step), "--status in-progress"},
		fault.ListChildren:    {"bagpipe items --parent", item},
		fault.FailedChildren:  {"bagpipe items --parent", item, "--status failed"},
		fault.ListWorkflows:   {"bagpipe workflow list"},
		fault.ListCollections: {"bagpipe collection list"},
		fault.ListBatches:     {"bagpipe batch list"},
		fault.ListMilestones:  {"bagpipe milestones"},
		fault.ListQueues:      {"bagpipe queue --list"},
		fault.ListRules:       {"bagpipe rules list"},
		fault.AddCollection:   {"bagpipe collection add", r.Name},
		fault.ScanCatalog:     {"bagpipe catalog scan", shellWord(r.Name)},
		fault.AddVersion:      {"bagpipe add --version-of", item, cmp.Or(shellWord(r.Name), "NEW-DELIVERY")},
		fault.AddDrop:         {"bagpipe add --move --collection", string(r.Collection), batch, shellWord(r.Name)},
		fault.MoreSteps:       {"bagpipe run -j"},
		fault.RebuildSTAC:     {"bagpipe export stac --rebuild", shellWord(r.Name)},
		fault.RestoreBranch:   {"git branch -f rewritten", r.From, "&& git update-ref", r.Name, r.To, r.From},
		fault.NameSite:        {"bagpipe site NAME"},
		fault.SignNothing:     {"bagpipe sign --off"},
		fault.AddRemote:       {"bagpipe remote add origin URL"},
		fault.CloneAnew:       {"rm -r", shellWord(r.Name)},
		fault.FetchAll:        {"git -C", shellWord(r.Name), "fetch --unshallow"},
		fault.PutBackBranch:   {"git -C", shellWord(r.Name), "push --force", shellWord(r.From), shellWord("refs/remotes/" + r.From + "/" + r.To + ":refs/heads/" + r.To)},
		fault.DropBranch:      {"git -C", shellWord(r.Name), "push", shellWord(r.From), "--delete", shellWord(r.To)},
		fault.RemoveRemote:    {"bagpipe remote remove", r.Name},
		fault.GiveRole:        {"bagpipe user add NAME --role", r.Access},
		fault.GiveAll:         {"bagpipe user add NAME --all-collections"},
		fault.GiveToken:       {"bagpipe token add NAME --role", r.Access},
		fault.ServeToChange:   {"bagpipe serve"},
		fault.MakeFolder:      {"mkdir -p", shellWord(r.Name)},
		fault.RemoveFile:      {"rm", shellWord(r.Name)},
		fault.RemoveFolder:    {"rm -r", shellWord(r.Name)},
		fault.PermitOwner:     {"chmod -R u+" + r.Access, shellWord(r.Name)},
		fault.PermitGroup:     {"chmod -R g+" + r.Access, shellWord(r.Name)},
		fault.PermitAccount:   {"setfacl -R -m u:" + r.Account + ":" + r.Access, shellWord(r.Name)},
	}[r.Verb]
	var given []string
	for _, w := range words {
		if w != "" {
			given = append(given, w)
		}
	}
	return strings.Join(given, " ")
}

// phrases hold, for the verbs that a text goes on with, the text around the command:
// %s is the command.
var phrases = map[fault.Verb]string{
	fault.Run:             "; do it with: %s",
	fault.Start:           "; start one with: %s",
	fault.Release:         "; %s lets it go on",
	fault.PutBack:         "; put it back as it was, from a backup or from the item's bag, and have it checked: %s",
	fault.GetPayload:      "; have them from there: %s",
	fault.ShowConflict:    "; see both with: %s",
	fault.PutBackCopy:     "; put one copy back as it was, from a backup, and have the others mended from it: %s",
	fault.Mend:            "; replace what is damaged from a sound copy: %s",
	fault.Recall:          "; bring its records back with: %s",
	fault.Activate:        "; let it go on with: %s",
	fault.Deactivate:      ", or take it out of the queues with: %s",
	fault.Retry:           "; let it be tried again with: %s",
	fault.Complete:        "; complete it with: %s",
	fault.Skip:            ", or go on without it: %s",
	fault.Enable:          "; let it go on with: %s",
	fault.CloseBatch:      "; close it with: %s",
	fault.CheckSettings:   "; %s checks what is edited here",
	fault.Init:            " Make a new one with: %s",
	fault.ActAs:           "; act as that account: %s",
	fault.Why:             "; %s says more",
	fault.Show:            "; %s lists its workflows and steps",
	fault.Status:          "; %s says why",
	fault.ShowBatch:       "; %s lists them",
	fault.ShowWorkflow:    "; %s lists them",
	fault.ShowQueue:       "; %s lists them",
	fault.ShowFailures:    "; %s groups the reasons",
	fault.ListItems:       "; %s lists them",
	fault.ListRuns:        "; %s lists all of them",
	fault.ListRunning:     "; %s lists them",
	fault.ListChildren:    "; %s lists them",
	fault.FailedChildren:  "; %s",
	fault.ListWorkflows:   "; %s shows them",
	fault.ListCollections: "; %s shows them",
	fault.ListBatches:     "; %s shows them",
	fault.ListMilestones:  "; %s shows them",
	fault.ListQueues:      "; %s shows them",
	fault.ListRules:       "; %s shows them",
	fault.AddCollection:   "; %s makes it",
	fault.ScanCatalog:     "; mended where it stands, it becomes the item's next version by: %s",
	fault.AddVersion:      "; to take it in as the item's next version: %s",
	fault.AddDrop:         ", or have it taken in as an item of its own: %s",
	fault.MoreSteps:       "; run more steps at once with: %s",
	fault.RebuildSTAC:     "; make all of it anew with: %s",
	fault.RestoreBranch:   "; to bring them back, keeping what is there now as the branch rewritten: %s",
	fault.NameSite:        "; name it with: %s",
	fault.SignNothing:     "; sign no more with: %s",
	fault.AddRemote:       "; name one with: %s",
	fault.CloneAnew:       "; before it is cloned again: %s",
	fault.FetchAll:        "; have all of it: %s",
	fault.PutBackBranch:   "; that site's next sync puts it back if it can, and so does: %s",
	fault.DropBranch:      "; where no site of yours made that branch, whoever may remove it there does so with: %s",
	fault.RemoveRemote:    "; to name another, first: %s",
	fault.GiveRole:        "; whoever runs the workspace gives it with: %s",
	fault.GiveAll:         "; whoever runs the workspace gives that with: %s",
	fault.GiveToken:       "; whoever runs the workspace makes such a token with: %s",
	fault.ServeToChange:   "; without --read-only, and by the workspace's own account, they can: %s",
	fault.MakeFolder:      "; to go on without the bytes of these items: %s",
	fault.RemoveFile:      "; its owner may remove it: %s",
	fault.RemoveFolder:    "; its owner may remove it: %s",
	fault.PermitOwner:     "; to have it taken in: %s",
	fault.PermitGroup:     "; to have it taken in: %s",
	fault.PermitAccount:   "; to have it taken in: %s",
}

// withRemedies appends remedies to a text of the engine.
func withRemedies(text string, remedies ...fault.Remedy) string {
	for _, r := range remedies {
		if command := shellText(r); command != "" {
			text += fmt.Sprintf(phrases[r.Verb], command)
		}
	}
	return text
}

// remedyWords words remedies for the web.
type remedyWords struct{}

func (remedyWords) Command(r fault.Remedy) string { return shellText(r) }
func (remedyWords) With(text string, remedies ...fault.Remedy) string {
	return withRemedies(text, remedies...)
}

// adviceLine words an advice.
func adviceLine(a fault.Advice) string { return withRemedies(a.Text, a.Remedies...) }

// errorText is the text of an error; each fault in it is followed by its remedies.
func errorText(err error) string {
	text := err.Error()
	for _, f := range fault.All(err) {
		own := f.Error()
		text = strings.Replace(text, own, withRemedies(own, f.FaultRemedies()...), 1)
	}
	if gitstore.Unfit(err) {
		text += "; an object of the history is damaged: with no engine at work, replace it from a copy with: bagpipe repair"
	}
	if lacks, is := errors.AsType[*fs.PathError](err); is && errors.Is(lacks, fs.ErrNotExist) && slices.Contains([]string{"open", "stat", "lstat"}, lacks.Op) {
		text = strings.Replace(text, lacks.Error(), layout.EncodePath(lacks.Path)+" is not there", 1)
	}
	return text
}

// shellWord writes a path as one word of a shell.
func shellWord(path string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("/._-+,:=@%", r)
	}
	printable := func(r rune) bool { return r != unicode.ReplacementChar && unicode.IsPrint(r) }
	all := func(fits func(rune) bool) bool {
		return strings.IndexFunc(path, func(r rune) bool { return !fits(r) }) < 0
	}
	switch {
	case all(plain):
		return path
	case all(printable):
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	var w strings.Builder
	w.WriteString("$'")
	for _, c := range []byte(path) {
		if c < 0x20 || c >= 0x7f || c == '\'' || c == '\\' {
			fmt.Fprintf(&w, `\x%02x`, c)
		} else {
			w.WriteByte(c)
		}
	}
	return w.String() + "'"
}
