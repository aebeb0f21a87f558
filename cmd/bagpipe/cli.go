package main

import (
	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/bagtool"
)

// cli is the grammar of the command line. The help lists the commands in the order of the
// fields.
type cli struct {
	globals
	intakeCommands
	askCommands
	actCommands
	otherCommands
}

type intakeCommands struct {
	Init    initCmd    `cmd:"" help:"Make a workspace."`
	Add     addCmd     `cmd:"" help:"Take files, folders or archives in as work items."`
	Explain explainCmd `cmd:"" help:"Say what the rules make of a path, without taking it in."`
	Run     runCmd     `cmd:"" help:"Take in the inbox and do what is ready."`
	Start   startCmd   `cmd:"" help:"Start a workflow on an item that is there."`
}

type askCommands struct {
	Status     statusCmd     `cmd:"" help:"Show how the workspace stands."`
	Items      itemsCmd      `cmd:"" help:"List items."`
	Search     admin.Search  `cmd:"" help:"Find items by names of files, labels, identifiers and metadata."`
	Queue      queueCmd      `cmd:"" help:"List what is ready and what waits for people."`
	Why        whyCmd        `cmd:"" help:"Say what an item's steps wait for, and what would let them go on."`
	Stalled    stalledCmd    `cmd:"" help:"List what has not moved for longer than usual."`
	Stats      statsCmd      `cmd:"" help:"Show how long steps wait and run, how often they fail, where the bottleneck is and what would help."`
	Show       showCmd       `cmd:"" help:"Show one item: steps, attempts, milestones, files."`
	Milestones milestonesCmd `cmd:"" help:"Count how many items reached each milestone, and how long between any two."`
	Log        logCmd        `cmd:"" help:"Show the history, of one item or of all."`
	Failures   failuresCmd   `cmd:"" help:"Group what failed and waits for a person; retry by the group."`
}

type actCommands struct {
	Step       stepCmd       `cmd:"" help:"Act on one step of an item."`
	Hold       holdCmd       `cmd:"" help:"Keep an item's steps from starting."`
	Release    releaseCmd    `cmd:"" help:"Let a held item go on."`
	Batch      batchCmd      `cmd:"" help:"List, show or close batches: items that belong together."`
	Collection collectionCmd `cmd:"" help:"List collections, or add one."`
	Workflow   workflowCmd   `cmd:"" help:"List, show, check or draw workflow definitions; move items to them."`
	Rules      rulesCmd      `cmd:"" help:"List or check the rules of recognition."`
}

type otherCommands struct {
	Retrieve   admin.Retrieve  `cmd:"" help:"Write an item's bag to a folder or into an archive, checked."`
	Fixity     admin.Fixity    `cmd:"" help:"Check what is kept against the history."`
	Doctor     admin.Doctor    `cmd:"" help:"Look at what the workspace stands on: account, mounts, file system, clock, space, Git, programs."`
	Restore    admin.Restore   `cmd:"" help:"Make a workspace from a backup of its history."`
	Check      admin.Check     `cmd:"" help:"Tell what is wrong with the settings of a workspace, or of a clone of one."`
	Maintain   maintainCmd     `cmd:"" help:"Join the store's small packs; a running engine does so by itself."`
	Archive    bagtool.Archive `cmd:"" help:"List, check, extract or pack an archive; needs no workspace."`
	Bag        bagtool.Bag     `cmd:"" help:"Make, validate, change, complete and serialize BagIt bags; needs no workspace."`
	Completion completionCmd   `cmd:"" help:"Print a script that completes commands and options in a shell."`
	Man        manCmd          `cmd:"" help:"Print the manual page, for man -l -."`
	Help       helpCmd         `cmd:"" help:"Show the help of a command."`
	Version    versionCmd      `cmd:"" help:"Print the version."`
}
