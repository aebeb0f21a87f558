package fault

import "bagpipe/layout"

// Verb names an act or a view of the workspace. A verb's comment names the fields of a
// Remedy that it uses.
type Verb string

const (
	None          Verb = ""
	Run           Verb = "run"
	MoreSteps     Verb = "more-steps"    // of a run, at once
	Start         Verb = "start"         // Item and Run, a workflow; both may be empty
	Release       Verb = "release"       // Item
	Mend          Verb = "mend"          // Item, whose copies are damaged
	PutBack       Verb = "put-back"      // Item, whose bytes in the workspace are damaged
	PutBackCopy   Verb = "put-back-copy" // Item, of which no copy is sound
	GetPayload    Verb = "get-payload"   // Item, whose bytes are not here; From where they are, if that is known
	ShowConflict  Verb = "show-conflict" // Item
	Recall        Verb = "recall"        // Item
	Activate      Verb = "activate"      // Item, Run
	Deactivate    Verb = "deactivate"    // Item, Run
	Retry         Verb = "retry"         // Item, Run, Step
	Complete      Verb = "complete"      // Item, Run, Step
	Skip          Verb = "skip"          // Item, Run, Step
	Enable        Verb = "enable"        // Run, a workflow; Step
	CloseBatch    Verb = "close-batch"   // Name
	Init          Verb = "init"
	CheckSettings Verb = "check-settings" // Name, a folder
	ActAs         Verb = "act-as"         // Name, the workspace; Account

	Why             Verb = "why"    // Item
	Show            Verb = "show"   // Item
	Status          Verb = "status" //
	ShowBatch       Verb = "show-batch"
	ShowWorkflow    Verb = "show-workflow" // Run, a workflow; empty: any
	ShowQueue       Verb = "show-queue"    // Run, a workflow; Step
	ShowFailures    Verb = "show-failures" // Step; empty: all
	ListItems       Verb = "list-items"
	ListRuns        Verb = "list-runs"       // Run, a workflow
	ListRunning     Verb = "list-running"    // Run, a workflow; Step
	ListChildren    Verb = "list-children"   // Item, the parent
	FailedChildren  Verb = "failed-children" // Item, the parent
	ListWorkflows   Verb = "list-workflows"
	ListCollections Verb = "list-collections"
	ListBatches     Verb = "list-batches"
	ListMilestones  Verb = "list-milestones"
	ListQueues      Verb = "list-queues"
	ListRules       Verb = "list-rules"
	AddCollection   Verb = "add-collection" // Name
	AddVersion      Verb = "add-version"    // Item; Name, a path, empty: of a delivery that is whole, and is to come
	ScanCatalog     Verb = "scan-catalog"   // Name, where the item's object is to be mended
	AddDrop         Verb = "add-drop"       // Name, a path, which is moved; Collection, Batch

	RebuildSTAC   Verb = "rebuild-stac"   // Name, a folder with a catalog
	RestoreBranch Verb = "restore-branch" // Name, a branch; moved From its tip To a commit that was lost from it

	NameSite  Verb = "name-site"
	AddRemote Verb = "add-remote"
	// CloneAnew removes what a clone left in a folder, Name, that was cut off; another can be made then.
	CloneAnew Verb = "clone-anew"
	// RemoveRemote forgets a remote, Name.
	FetchAll      Verb = "fetch-all"       // Name, a folder with a shallow clone
	PutBackBranch Verb = "put-back-branch" // Name, the workspace; From, a remote; To, the branch that was rewritten there
	DropBranch    Verb = "drop-branch"     // Name, the workspace; From, a remote; To, the branch
	RemoveRemote  Verb = "remove-remote"
	// SignNothing has commits signed no more.
	SignNothing Verb = "sign-nothing"

	GiveRole      Verb = "give-role"       // Access, the role of a person's account
	GiveAll       Verb = "give-all"        // of a person's account, all collections
	GiveToken     Verb = "give-token"      // Access, the role of a program's account, for all collections
	ServeToChange Verb = "serve-to-change" // pages through which something can be changed

	MakeFolder    Verb = "make-folder"    // Name, a path
	RemoveFile    Verb = "remove-file"    // Name, a path
	RemoveFolder  Verb = "remove-folder"  // Name, a path
	PermitOwner   Verb = "permit-owner"   // Name, a path; Access
	PermitGroup   Verb = "permit-group"   // Name, a path; Access
	PermitAccount Verb = "permit-account" // Name, a path; Access, Account
)

// Remedy is an act that lets something go on, or a view that tells more. The zero Remedy
// is none.
type Remedy struct {
	Verb       Verb
	Item       layout.ItemID
	Run        string // of an item, or a workflow
	Step       layout.Name
	Name       string // of a batch, a collection or a path
	Access     string // permissions as chmod spells them: rX, rwX; or a role
	Account    string // gets the access
	Collection layout.Name
	Batch      layout.Name // empty: none
	From       string      // a commit, or where bytes are
	To         string      // a commit
}

// Advice is a text and the remedies that it leads to.
type Advice struct {
	Text     string
	Remedies []Remedy
}
