package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/sync"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// Site names the workspace among those that share its history.
type Site struct {
	Name     string `arg:"" optional:"" help:"The name, for good; without it the name is printed."`
	Restored bool   `help:"This workspace was restored from a copy of that site's history, and takes its place. The commits that the site pushed are fetched first."`
	Alone    bool   `help:"With --restored: there is no remote, and no other copy has more of the site's history."`
}

// Validate is called by kong.
func (c *Site) Validate() error {
	if c.Restored && c.Name == "" || c.Alone && !c.Restored {
		return errors.New("--restored is for NAME, and --alone for --restored")
	}
	return nil
}

// Run names the workspace, or says its name.
func (c *Site) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if c.Name == "" {
			if e.Ledger.Site.Name == "" {
				on.Talk("this workspace has no name")
				return nil
			}
			fmt.Fprintln(on.Out, e.Ledger.Site.Name)
			return nil
		}
		name, err := layout.ParseName(c.Name)
		if err != nil {
			return screen.WrongUse("NAME: " + err.Error())
		}
		if c.Restored {
			did, err := sync.New(e.Ledger, e.Guard).Restored(ctx, name, c.Alone)
			if err == nil && !did {
				on.Talk("this workspace is %s already", name)
				return nil
			}
			return told(err, on, "%s: restored", name)
		}
		return told(sync.New(e.Ledger, e.Guard).Name(ctx, name), on, "this workspace is %s", name)
	})
}

// Sign has the workspace's commits signed.
type Sign struct {
	Key   string `placeholder:"FILE" help:"An SSH key: a secret one without a passphrase, or a public one whose secret an agent has; default: Git's user.signingKey."`
	Every bool   `help:"Every commit, not the last of each group alone."`
	Off   bool   `help:"Sign no more."`
}

// Validate is called by kong.
func (c *Sign) Validate() error {
	if c.Off && (c.Every || c.Key != "") {
		return errors.New("--off goes alone")
	}
	return nil
}

// Run configures it, and says by which key.
func (c *Sign) Run(ctx context.Context, on *screen.Screen, around screen.Around, open Open) error {
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	if c.Off {
		return told(gitstore.Configure(ctx, root, "sign", ""), on, "commits are not signed any more")
	}
	which := gitstore.SignGroups
	if c.Every {
		which = gitstore.SignAll
	}
	_, file := gitstore.SigningOf(root)
	if c.Key != "" {
		if file, err = filepath.Abs(c.Key); err != nil {
			return err
		}
	}
	if file == "" {
		return screen.WrongUse("--key: which key signs?")
	}
	key, err := trust.OpenKey(file)
	if err == nil {
		_, err = key.Sign([]byte("a trial")) // such as without an agent
	}
	if err != nil {
		return err
	}
	if err := errors.Join(gitstore.ConfigureKey(ctx, root, file), gitstore.Configure(ctx, root, "sign", which)); err != nil {
		return err
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		fmt.Fprintln(on.Out, key.Public())
		return sync.New(e.Ledger, e.Guard).SetKey(ctx, key.Public())
	})
}

// Own gives items to a site.
type Own struct {
	Item     []string `arg:"" help:"Identifier, the beginning of one, or label."`
	Site     string   `required:"" placeholder:"NAME" help:"The site whose engines do the item's steps from now on."`
	TakeOver bool     `help:"Also where another site has the item, or a step of it runs, which is then taken for lost; needs -m."`
	Message  string   `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// Run tells of each item.
func (c *Own) Run(ctx context.Context, on *screen.Screen, open Open) error {
	site, err := layout.ParseName(c.Site)
	if err != nil {
		return screen.WrongUse("--site: " + err.Error())
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		given := []act.Done{}
		var errs []error
		for _, ref := range c.Item {
			id, err := e.Ask.Resolve(ctx, ref)
			if err == nil {
				err = e.Act.Own(ctx, id, site, c.TakeOver, c.Message)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if given = append(given, act.Done{Item: id}); !c.JSON {
				fmt.Fprintf(on.Out, "%s given to %s\n", id.Short(), site)
			}
		}
		if c.JSON {
			errs = append(errs, on.JSON(given))
		}
		return errors.Join(errs...)
	})
}

// Clone makes a second workspace of a history.
type Clone struct {
	URL  string `arg:"" name:"url" help:"A repository or an address that git clone takes."`
	Dir  string `arg:"" writes:"" help:"The folder to make."`
	Site string `required:"" placeholder:"NAME" help:"The name of the new workspace among those that share the history."`
}

// Run says where the bytes are.
func (c *Clone) Run(ctx context.Context, on *screen.Screen, options Options) error {
	name, err := layout.ParseName(c.Site)
	if err != nil {
		return screen.WrongUse("--site: " + err.Error())
	}
	o, err := options()
	if err != nil {
		return err
	}
	if err := engine.Clone(ctx, c.URL, c.Dir, name, o); err != nil {
		return err
	}
	fmt.Fprintf(on.Out, "Made workspace %s, site %s\n", c.Dir, name)
	on.Talk("It has the items' records and not their bytes.")
	return nil
}

// Options are what an engine is opened with.
type Options func() (engine.Options, error)

// Remote names where a workspace syncs.
type Remote struct {
	Add    remoteAdd    `cmd:"" workspace:"" help:"Name a repository that this workspace syncs with."`
	List   remoteList   `cmd:"" default:"withargs" help:"List the repositories that this workspace syncs with."`
	Remove remoteRemove `cmd:"" workspace:"" help:"Sync with a repository no more."`
}

type remoteList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists names and addresses.
func (c *remoteList) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	urls, err := gitstore.RemoteURLs(ctx, root)
	if err != nil {
		return err
	}
	for name, address := range urls {
		urls[name] = gitstore.Redacted(address)
	}
	if c.JSON {
		return on.JSON(urls)
	}
	if len(urls) == 0 {
		on.Talk("no remotes; add one with: bagpipe remote add NAME URL")
		return nil
	}
	t := screen.NewTable("remote", "address")
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		t.Row(name, urls[name])
	}
	return t.Print(on.Out)
}

type remoteRemove struct {
	Name string `arg:"" help:"The remote's name, as listed."`
}

// Run forgets one; the repository itself stays as it is.
func (c *remoteRemove) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		return told(gitstore.RemoveRemote(ctx, e.Root(), c.Name), on, "%s: removed; its commits stay", c.Name)
	})
}

type remoteAdd struct {
	Name string `arg:"" help:"The remote's name, such as origin."`
	URL  string `arg:"" name:"url" help:"A repository or an address that git push takes."`
}

// Run adds one.
func (c *remoteAdd) Run(ctx context.Context, on *screen.Screen, open Open) error {
	if _, err := layout.ParseName(c.Name); err != nil {
		return screen.WrongUse("NAME: " + err.Error())
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		return told(gitstore.AddRemote(ctx, e.Root(), c.Name, c.URL), on, "%s: added; join histories with: bagpipe sync", c.Name)
	})
}

// Sync joins the workspace's history with those of other sites.
type Sync struct {
	JSON   bool     `name:"json" help:"Print JSON."`
	Offers bool     `hidden:"" help:"Join the branches for/NAME alone, for the hook that is told of a push."`
	Pushed []string `hidden:"" sep:"none" placeholder:"BRANCH" help:"With --offers: a branch that was pushed."`
}

// Run syncs with every remote.
func (c *Sync) Run(ctx context.Context, on *screen.Screen, open Open, around screen.Around) error {
	if len(c.Pushed) > 0 {
		root, err := engine.Find(string(around))
		if err != nil {
			return err
		}
		if sync.AwaitTaken(ctx, root, c.Pushed) {
			return tellPushed(ctx, on, root, c.Pushed)
		}
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		if c.Offers {
			return takeOffers(ctx, on, e, c.Pushed)
		}
		reports, err := sync.New(e.Ledger, e.Guard).Sync(ctx, true)
		if err != nil && reports == nil {
			return err
		}
		_, errSettings := e.Settings.CatchUp(ctx) // which tells of lines that two sites changed
		err = errors.Join(err, errSettings)
		if c.JSON {
			return errors.Join(on.JSON(reports), err)
		}
		for _, r := range reports {
			if r.Failed == "" || len(r.Joined)+len(r.Pushed) > 0 {
				fmt.Fprintln(on.Out, syncText(r))
			}
			for _, o := range r.Offered {
				fmt.Fprintln(on.Out, OfferText(o))
			}
			for _, b := range slices.Sorted(maps.Keys(r.Refused)) {
				on.Talk("%s does not take branch %s: %s", r.Remote, b, r.Refused[b])
			}
		}
		return err
	})
}

// takeOffers is what who pushed sees where no engine takes branches. Of many who push at once one has what all pushed
// joined. Hooks of earlier versions do not say which were pushed, and tell of all that were looked at.
func takeOffers(ctx context.Context, on *screen.Screen, e *engine.Engine, pushed []string) error {
	looked, err := sync.New(e.Ledger, e.Guard).TakeOffers(ctx, false)
	if err != nil {
		return err
	}
	if len(pushed) > 0 {
		return tellPushed(ctx, on, e.Root(), pushed)
	}
	there, err := sync.Offers(ctx, e.Root())
	if len(looked) == 0 && len(there) == 0 { // another process was quicker
		fmt.Fprintln(on.Out, "joined")
	}
	for _, o := range looked {
		fmt.Fprintln(on.Out, OfferText(o))
	}
	return err
}

// tellPushed says what became of own branches: those that are not there any more are joined.
func tellPushed(ctx context.Context, on *screen.Screen, root string, pushed []string) error {
	there, err := sync.Offers(ctx, root, pushed...)
	if err != nil {
		return err
	}
	waiting := map[string]sync.Offered{}
	for _, o := range there {
		waiting[o.Branch] = o
	}
	for _, b := range pushed {
		o, is := waiting[b]
		if is && o.Refused == "" {
			fmt.Fprintf(on.Out, "%s: waits until those before it are looked at\n", b)
			continue
		}
		o.Branch = b
		fmt.Fprintln(on.Out, OfferText(o))
	}
	return nil
}

// OfferText says what became of a branch for/NAME.
func OfferText(o sync.Offered) string {
	at := o.Branch
	if o.Remote != "" {
		at += " of " + o.Remote
	}
	if o.Refused == "" {
		return at + ": joined"
	}
	return at + ": not joined: " + o.Refused
}

func syncText(r sync.Report) string {
	var did []string
	if len(r.Joined) > 0 {
		did = append(did, "joined "+strings.Join(r.Joined, ", "))
	}
	isAnchor := func(name string) bool { return strings.HasPrefix(name, layout.AnchorTags) }
	pushed := slices.DeleteFunc(slices.Clone(r.Pushed), isAnchor)
	if n := len(r.Pushed) - len(pushed); n > 0 {
		pushed = append(pushed, layout.Count(n, "anchor"))
	}
	if len(pushed) > 0 {
		did = append(did, "pushed "+strings.Join(pushed, ", "))
	}
	if len(did) == 0 {
		did = append(did, "nothing new")
	}
	return r.Remote + ": " + strings.Join(did, "; ")
}
