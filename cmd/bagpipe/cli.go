package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/bagtool"
	"bagpipe/cmd/bagpipe/internal/farm"
	"bagpipe/cmd/bagpipe/internal/serve"
	"bagpipe/engine"
	"bagpipe/engine/roots"

	"github.com/alecthomas/kong"
)

// cli is the grammar of the command line. The help lists the commands in the order of the
// fields, each group under its title.
type cli struct {
	globals
	firstCommands   `title:"First steps:"`
	intakeCommands  `title:"Take in:"`
	lookCommands    `title:"Look and decide:"`
	settingCommands `title:"Set up and serve:"`
	keepCommands    `title:"Keep, hand out, prove and restore:"`
	siteCommands    `title:"Several machines and sites:"`
	toolCommands    `title:"Care and tools:"`
}

type firstCommands struct {
	Init   initCmd   `cmd:"" help:"Make a workspace."`
	Add    addCmd    `cmd:"" workspace:"" help:"Take files, folders or archives in as work items."`
	Run    runCmd    `cmd:"" workspace:"" help:"Take in the inbox and do the steps that are ready."`
	Status statusCmd `cmd:"" help:"Show how the workspace stands."`
	Queue  queueCmd  `cmd:"" help:"List the steps that are ready, and those that wait for people."`
	Items  itemsCmd  `cmd:"" help:"List items."`
	Show   showCmd   `cmd:"" help:"Show one item: steps, attempts, milestones, files."`
	Why    whyCmd    `cmd:"" help:"Explain why an item's steps wait, and name the commands that let them go on."`
	Step   stepCmd   `cmd:"" help:"Act on one step of an item."`
	Log    logCmd    `cmd:"" help:"Show the history, of one item or of all."`
	Help   helpCmd   `cmd:"" help:"Show the help of a command."`
}

type intakeCommands struct {
	Register   admin.Register `cmd:"" workspace:"" help:"Make an item whose content is yet to come."`
	Attach     admin.Attach   `cmd:"" workspace:"" help:"Bring an item the content that it was registered without."`
	Read       admin.Read     `cmd:"" workspace:"" help:"Call a reader: a program that hands in items."`
	Submit     farm.Submit    `cmd:"" help:"Submit files or folders to a server as work items, from any machine; needs no workspace."`
	Explain    explainCmd     `cmd:"" help:"Explain which rules take a path, and as which object, without taking it in."`
	Start      startCmd       `cmd:"" help:"Start a workflow on an item that is there."`
	Collection collectionCmd  `cmd:"" help:"List collections, or add one."`
	Batch      batchCmd       `cmd:"" help:"List, show or close batches: items that belong together."`
	Catalog    admin.Catalog  `cmd:"" help:"Catalogue folders where they are: add, scan, status, list, remove."`
}

type lookCommands struct {
	Failures   failuresCmd   `cmd:"" help:"Group the failures that wait for a person; retry by the group."`
	Stalled    stalledCmd    `cmd:"" help:"List the steps that have not moved for longer than usual."`
	Stats      statsCmd      `cmd:"" help:"Show how long steps wait and run, how often they fail, where the bottleneck is and how to widen it."`
	Search     admin.Search  `cmd:"" help:"Find items by names of files, labels, identifiers and metadata."`
	Map        admin.Map     `cmd:"" help:"Draw where items lie."`
	Quality    admin.Quality `cmd:"" help:"Show the findings of an item's checks, by level."`
	Milestones milestonesCmd `cmd:"" help:"Count how many items reached each milestone, and how long between any two."`
	Feed       admin.Feed    `cmd:"" help:"Show the activity feed of a person or a collection; post to it."`
	Hold       holdCmd       `cmd:"" help:"Keep an item's steps from starting."`
	Release    releaseCmd    `cmd:"" help:"Let a held item go on."`
	Note       noteCmd       `cmd:"" help:"Add a word of your own to an item's history."`
	Item       itemCmd       `cmd:"" help:"Change how an item is described: lane, label, collection, identifiers, metadata."`
	Retire     retireCmd     `cmd:"" help:"Take the records of finished items out of the tip; the history keeps them."`
	Recall     recallCmd     `cmd:"" help:"Bring the records of a retired item back."`
	Cancel     cancelCmd     `cmd:"" help:"End the steps that run on an item, or are about to, as failed."`
}

type settingCommands struct {
	Serve    serve.Command  `cmd:"" workspace:"" help:"Run and watch as run --watch does, with pages for browsers and calls for programs."`
	User     serve.User     `cmd:"" workspace:"" help:"Add, list or remove the people who sign in to the pages."`
	Token    serve.Token    `cmd:"" workspace:"" help:"Add, list or remove the tokens of programs that call."`
	Workflow workflowCmd    `cmd:"" help:"List, show, check or draw workflow definitions; move items to them."`
	Rules    rulesCmd       `cmd:"" help:"List or check the rules of recognition."`
	Schedule admin.Schedule `cmd:"" help:"List, start, stop or fire schedules: work at certain times."`
	Shutdown admin.Shutdown `cmd:"" help:"Stop all schedules, and end every engine with the last firing."`
	Formats  admin.Formats  `cmd:"" help:"Say by which signatures formats are identified, or put newer ones in force."`
	Check    admin.Check    `cmd:"" help:"Check the settings of a workspace, or of a clone of one."`
}

type keepCommands struct {
	Deposit  admin.Deposit  `cmd:"" workspace:"" help:"Add copies of deposited items on targets."`
	Fixity   admin.Fixity   `cmd:"" help:"Check the copies of items against the history."`
	Retrieve admin.Retrieve `cmd:"" help:"Write an item's bag to a folder or into an archive, checked."`
	Delivery admin.Delivery `cmd:"" help:"List the deliveries to other systems by delivery rules, and decide on them."`
	Export   exportCmds     `cmd:"" help:"Write the history of items as PREMIS, METS, RDF or tables; all items as STAC."`
	Payload  admin.Payload  `cmd:"" help:"List the items whose bytes are not here, and move bytes between sites."`
	Dispose  admin.Dispose  `cmd:"" help:"Propose, approve and carry out that items are removed for good."`
	Audit    admin.Audit    `cmd:"" help:"Prove the history: that each commit is the lawful event it says it is."`
	Sign     admin.Sign     `cmd:"" workspace:"" help:"Sign the workspace's commits by an SSH key, from now on."`
	Anchor   admin.Anchor   `cmd:"" workspace:"" help:"Sign the history as it stands, by an SSH key."`
	Receipt  admin.Receipt  `cmd:"" help:"Print a proof of an item's records, to be verified with git alone."`
	Backup   admin.Backup   `cmd:"" help:"Check that a backup is whole."`
	Restore  admin.Restore  `cmd:"" help:"Make a workspace from a backup of its history."`
	Recover  admin.Recover  `cmd:"" help:"Bring items back from their deposited bags alone."`
	Repair   admin.Repair   `cmd:"" help:"Replace damaged and missing objects of the history, from copies."`
}

type siteCommands struct {
	Worker      farm.Worker       `cmd:"" help:"Do steps for an engine on another machine; needs no workspace."`
	Workers     farm.Workers      `cmd:"" help:"Tell of the workers of this workspace, and give them orders."`
	Monitor     farm.Monitor      `cmd:"" help:"Tell at intervals how the workers and the offers to them stand."`
	Broker      farm.Broker       `cmd:"" help:"Carry messages between an engine and its workers; three brokers are a cluster."`
	Site        admin.Site        `cmd:"" workspace:"" help:"Name this workspace among those that share its history."`
	Remote      farm.Remote       `cmd:"" help:"Name repositories that this workspace syncs with; let workers in."`
	Clone       admin.Clone       `cmd:"" help:"Make a second workspace, a site of its own, of a history."`
	Sync        admin.Sync        `cmd:"" workspace:"" help:"Join this workspace's history with those of other sites, through its remotes."`
	Own         admin.Own         `cmd:"" workspace:"" help:"Give items to a site, whose engines do their steps from then on."`
	Conflict    admin.Conflict    `cmd:"" help:"List, show and settle the values of an item in which two histories differ."`
	Divergences admin.Divergences `cmd:"" help:"List the steps that two sites did with other outputs, though they were given the same."`
	MergeDriver admin.MergeDriver `cmd:"" name:"merge-driver" help:"Have git join records in a clone."`
}

type toolCommands struct {
	Doctor     admin.Doctor    `cmd:"" help:"Look at the ground of the workspace: account, mounts, file system, clock, space, Git, programs."`
	Maintain   maintainCmd     `cmd:"" workspace:"" help:"Join the store's small packs; a running engine does so by itself."`
	Bag        bagtool.Bag     `cmd:"" help:"Make, validate, change, complete and serialize BagIt bags; needs no workspace."`
	Archive    bagtool.Archive `cmd:"" help:"List, check, extract or pack an archive; needs no workspace."`
	OCFL       bagtool.OCFL    `cmd:"" name:"ocfl" help:"Validate OCFL objects and storage roots; needs no workspace."`
	Completion completionCmd   `cmd:"" help:"Print a script that completes commands and options in a shell."`
	Man        manCmd          `cmd:"" help:"Print the manual page, for man -l -."`
	Version    versionCmd      `cmd:"" help:"Print the version."`
}

// westOfGreenwich is a value of --bbox that looks like an option.
var westOfGreenwich = regexp.MustCompile(`^-[0-9.]`)

// parse reads the command line into c. To make the grammar of all commands takes longer
// than most commands do: where one is named, the grammar of it alone is tried first.
// What that cannot parse, help and mistakes, is for the whole.
func parse(c *cli, options []kong.Option, args []string) (ctx *kong.Context, err error) {
	defer func() {
		if p := recover(); p != nil && p != any(errExit) {
			panic(p)
		}
	}()
	if i := slices.Index(args, "--bbox"); i >= 0 && i+1 < len(args) && westOfGreenwich.MatchString(args[i+1]) {
		args = slices.Concat(args[:i], []string{args[i] + "=" + args[i+1]}, args[i+2:])
	}
	if others := otherCommandsThan(args); others != "" {
		if one, err := kong.New(c, slices.Concat(options, []kong.Option{kong.IgnoreFields(others)})...); err == nil {
			if ctx, err := one.Parse(args); err == nil {
				return ctx, nil
			}
		}
		*c = cli{}
	}
	all, err := kong.New(c, options...)
	if err != nil {
		return nil, err
	}
	return all.Parse(args)
}

// otherCommandsThan matches, for kong, the fields of the commands that are not the first
// named among args; empty: none is named, or it speaks of the others.
func otherCommandsThan(args []string) string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if _, is := f.Tag.Lookup("cmd"); is {
			names = append(names, f.Name)
		}
	}
	named := slices.IndexFunc(args, func(arg string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.ToLower(name) == arg })
	})
	if named < 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") || slices.Contains([]string{"completion", "man", "help"}, args[named]) {
		return ""
	}
	// Kong has the option --log, and with it BAGPIPE_LOG, under the name of the command log.
	names = slices.DeleteFunc(names, func(name string) bool { return strings.ToLower(name) == args[named] || name == "Log" })
	return `^cli\.(` + strings.Join(names, "|") + `)$`
}

// sparesCatalogs refuses arguments and options by which a command would write into the root of a catalog of the workspace
// around. Those that name what a command writes have the tag writes, which may name the option that makes it do so.
func (a *app) sparesCatalogs(ctx *kong.Context) error {
	var places []string
	for node := ctx.Selected(); node != nil; node = node.Parent {
		for _, v := range slices.Concat(node.Positional, flagValues(node.Flags)) {
			if with := v.Tag.Get("writes"); v.Tag.Has("writes") && (with == "" || isOn(ctx, with)) {
				places = append(places, texts(v.Target)...)
			}
		}
	}
	places = slices.DeleteFunc(places, func(p string) bool { return p == "" || p == "-" })
	root, err := engine.Find(a.workspaceDir())
	if err != nil || len(places) == 0 { // without a workspace there is no catalog
		return nil
	}
	catalogs := roots.Of(root)
	for _, p := range places {
		if err := roots.Outside(catalogs, p); err != nil {
			return err
		}
	}
	return nil
}

// needsWorkspace refuses, in a clone of a workspace, the commands that have the tag workspace.
func (a *app) needsWorkspace(ctx *kong.Context) error {
	for node := ctx.Selected(); node != nil; node = node.Parent {
		if node.Tag != nil && node.Tag.Has("workspace") {
			return engine.OnlyClone(a.workspaceDir())
		}
	}
	return nil
}

func flagValues(flags []*kong.Flag) (values []*kong.Value) {
	for _, f := range flags {
		values = append(values, f.Value)
	}
	return values
}

// isOn reports whether an option that is on or off is on.
func isOn(ctx *kong.Context, name string) bool {
	return slices.ContainsFunc(ctx.Flags(), func(f *kong.Flag) bool { return f.Name == name && f.Target.Bool() })
}

// texts are the values of an argument or an option.
func texts(v reflect.Value) []string {
	if all, is := v.Interface().([]string); is {
		return all
	}
	return []string{v.String()}
}
