package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"bagpipe/bags"
	"bagpipe/engine"
)

// bagCmd is a BagIt tool by itself: none of its commands needs a workspace.
type bagCmd struct {
	Create    bagCreateCmd    `cmd:"" help:"Make a bag of a folder, beside it or where it stands."`
	Validate  bagValidateCmd  `cmd:"" help:"Validate a bag, a folder or an archive, by RFC 8493. Exit code 0: valid, 1: not."`
	Update    bagUpdateCmd    `cmd:"" help:"Bring a bag's manifests up to date with its files."`
	Info      bagInfoCmd      `cmd:"" help:"Show or change bag-info.txt."`
	Manifest  bagManifestCmd  `cmd:"" help:"Add manifests."`
	Fetch     bagFetchCmd     `cmd:"" help:"Complete a bag with the files that fetch.txt lists."`
	Serialize bagSerializeCmd `cmd:"" help:"Write a bag into an archive."`
	Profile   bagProfileCmd   `cmd:"" help:"Check BagIt profiles, and bags against them."`
}

// bagWork are the options of what takes long.
type bagWork struct {
	JSON  bool `name:"json" help:"Print JSON; progress goes to standard error, one object a line."`
	Quiet bool `short:"q" help:"No progress."`
}

func (w bagWork) meter(a *app, what string) *meter { return newMeter(a, what, w.JSON, w.Quiet) }

type bagValidateCmd struct {
	Bag      string   `arg:"" help:"The bag's folder, or an archive that holds it (zip, tar, tar.gz, tar.zst)."`
	Quick    bool     `xor:"level" help:"Only compare Payload-Oxum with the number of files and bytes; finds no bag valid."`
	Complete bool     `xor:"level" help:"Check everything but the digests."`
	Profile  []string `placeholder:"FILE" sep:"none" help:"A BagIt profile that the bag must satisfy as well; may be given several times."`
	FailFast bool     `help:"Stop at the first error."`
	bagWork
}

func (c *bagValidateCmd) Run(a *app) error {
	profiles, err := loadProfiles(c.Profile)
	if err != nil {
		return err
	}
	o := bags.ValidateOptions{FailFast: c.FailFast, Profiles: profiles}
	switch {
	case c.Quick:
		o.Level = bags.Quick
	case c.Complete:
		o.Level = bags.Complete
	}
	m := c.meter(a, "validate")
	o.Progress = m.report
	report, err := bags.Validate(a.ctx, c.Bag, o)
	m.close()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.json(report); err != nil {
			return err
		}
	} else {
		printReport(a, c.Bag, report)
	}
	if report.Errors > 0 || o.Level == bags.Full && !report.Valid {
		return exit(exitError)
	}
	return nil
}

func loadProfiles(files []string) (all []*bags.Profile, err error) {
	for _, f := range files {
		p, err := bags.LoadProfile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func printReport(a *app, bag string, r bags.Report) {
	printFindings(a, r.Findings)
	fmt.Fprintf(a.out, "%s: %s: BagIt %s, %d payload files, %d bytes, %d errors, %d warnings\n",
		bag, answer(r), r.Version, r.PayloadFiles, r.PayloadBytes, r.Errors, r.Warnings)
}

func printFindings(a *app, findings []bags.Finding) {
	for _, f := range findings {
		where := f.Path
		if where != "" {
			where += ": "
		}
		if f.Constraint != "" {
			where += f.Constraint + ": "
		}
		fmt.Fprintf(a.out, "%s: %s%s\n", f.Severity, where, f.Text)
	}
}

// answer keeps apart what a bag lacks and what is wrong with it.
func answer(r bags.Report) string {
	switch {
	case r.Valid:
		return "valid"
	case r.Errors > 0 && r.Incomplete():
		return "not valid: incomplete"
	case r.Errors > 0:
		return "not valid"
	case r.Level == bags.Complete:
		return "complete (no digest was computed)"
	}
	return "no error found (quickly: only counted)"
}

type bagCreateCmd struct {
	Source    string   `arg:"" help:"The folder whose contents become the payload."`
	Dest      string   `arg:"" optional:"" help:"The bag's folder to make."`
	InPlace   bool     `help:"Make the folder itself the bag: what is in it moves into data/."`
	Algorithm []string `placeholder:"NAME" help:"md5, sha1, sha224, sha256, sha384 or sha512; may be given several times. Default: what the profile requires, or sha256 and sha512."`
	Info      []string `placeholder:"LABEL=VALUE" sep:"none" help:"A line of bag-info.txt; may be given several times."`
	Profile   []string `placeholder:"FILE" sep:"none" help:"A BagIt profile that the bag must satisfy; may be given several times."`
	Link      bool     `help:"Link the files instead of copying them, where the file system can. Then neither may be changed in place."`
	Nest      bool     `help:"Make a bag of what is a bag already."`
	Sync      bool     `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

// Validate is kong's: it makes these usage errors.
func (c *bagCreateCmd) Validate() error {
	if c.InPlace == (c.Dest != "") {
		return errors.New("give either the bag's folder to make, or --in-place")
	}
	_, err := fieldsOf(c.Info)
	return err
}

func (c *bagCreateCmd) Run(a *app) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	m := c.meter(a, "create")
	o.Progress = m.report
	create := bags.Create
	if c.InPlace {
		create = bags.CreateInPlace
	}
	made, err := create(a.ctx, o)
	m.close()
	var broken *bags.Error
	if errors.As(err, &broken) && broken.Rule == bags.RuleBag {
		return fmt.Errorf("%w; bagpipe bag update brings its manifests up to date, and --nest makes a bag of it all the same", err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(made)
	}
	bag := c.Dest
	if c.InPlace {
		bag = c.Source
	}
	if made.Recovered == bags.Completed {
		fmt.Fprintf(a.out, "%s: a create or change that was interrupted is completed; nothing else was done\n", bag)
		return nil
	}
	sayRecovered(a, bag, made.Recovered)
	printFindings(a, made.Findings)
	for _, p := range made.EmptyFolders {
		fmt.Fprintf(a.out, "warning: data/%s: an empty folder: it is in data/, and in no manifest\n", p)
	}
	fmt.Fprintf(a.out, "%s: BagIt 1.0, %d payload files, %d bytes\n", bag, made.Files, made.Bytes)
	return nil
}

func (c *bagCreateCmd) options() (bags.CreateOptions, error) {
	o := bags.CreateOptions{
		Payload: c.Source, Dest: c.Dest, Date: time.Now(), Agent: "Bagpipe", Link: c.Link, Nest: c.Nest, Sync: c.Sync, NoSync: !c.Sync,
	}
	var err error
	if o.Profiles, err = loadProfiles(c.Profile); err != nil {
		return o, err
	}
	if o.Info, err = fieldsOf(c.Info); err != nil {
		return o, err
	}
	for _, n := range c.Algorithm {
		o.Algorithms = append(o.Algorithms, bags.Algorithm(n))
	}
	if len(o.Algorithms) == 0 && len(o.Profiles) > 0 {
		o.Algorithms = o.Profiles[0].Algorithms([]bags.Algorithm{bags.SHA256, bags.SHA512})
	}
	return o, nil
}

func sayRecovered(a *app, bag string, was bags.Outcome) {
	if was != "" {
		a.talk("%s: a create or change that was interrupted is %s", bag, was)
	}
}

type bagUpdateCmd struct {
	Dir     string `arg:"" help:"The bag's folder."`
	Changed bool   `help:"Accept files that are not what the manifests say."`
	Removed bool   `help:"Accept that listed files are gone."`
	Sync    bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagUpdateCmd) Run(a *app) error {
	m := c.meter(a, "update")
	did, err := bags.Update(a.ctx, c.Dir, bags.UpdateOptions{
		AcceptChanged: c.Changed, AcceptRemoved: c.Removed, Date: time.Now(), Agent: "Bagpipe", NoSync: !c.Sync, Progress: m.report,
	})
	m.close()
	refused := errors.Is(err, bags.ErrNotAccepted)
	if err != nil && !refused {
		return err
	}
	if c.JSON {
		if err := a.json(did); err != nil {
			return err
		}
	} else {
		c.print(a, did)
	}
	if refused {
		a.talk("bagpipe: %v; look at these files, and then: bagpipe bag update --changed --removed %s", err, c.Dir)
		return exit(exitError)
	}
	return nil
}

func (c *bagUpdateCmd) print(a *app, did bags.Updated) {
	sayRecovered(a, c.Dir, did.Recovered)
	for _, kind := range []struct {
		word  string
		paths []string
	}{{"added", did.Added}, {"changed", did.Changed}, {"removed", did.Removed}} {
		for _, p := range kind.paths {
			fmt.Fprintf(a.out, "%s: %s\n", kind.word, p)
		}
	}
	if !did.Written {
		return
	}
	from := ""
	if did.From != "1.0" {
		from = ", was " + did.From
	}
	fmt.Fprintf(a.out, "%s: BagIt 1.0%s, %d payload files, %d bytes; %d added, %d changed, %d removed\n",
		c.Dir, from, did.Files, did.Bytes, len(did.Added), len(did.Changed), len(did.Removed))
}

type bagManifestCmd struct {
	Add bagManifestAddCmd `cmd:"" help:"Add manifests of one more algorithm to a bag that is valid."`
}

type bagManifestAddCmd struct {
	Algorithm string `arg:"" enum:"md5,sha1,sha224,sha256,sha384,sha512" help:"md5, sha1, sha224, sha256, sha384 or sha512."`
	Dir       string `arg:"" help:"The bag's folder."`
	Sync      bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagManifestAddCmd) Run(a *app) error {
	m := c.meter(a, "manifest add")
	did, err := bags.AddManifest(a.ctx, c.Dir, bags.Algorithm(c.Algorithm), bags.AmendOptions{NoSync: !c.Sync, Progress: m.report})
	m.close()
	if errors.Is(err, bags.ErrNotValid) {
		printReport(a, c.Dir, did.Report)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(did)
	}
	sayRecovered(a, c.Dir, did.Recovered)
	fmt.Fprintf(a.out, "%s: valid, and has manifest-%s.txt and tagmanifest-%s.txt now\n", c.Dir, c.Algorithm, c.Algorithm)
	return nil
}

type bagFetchCmd struct {
	Dir         string   `arg:"" help:"The bag's folder."`
	AllowHost   []string `placeholder:"HOST" help:"A host that http and https URLs may name: example.org, example.org:8080, *.example.org; may be given several times."`
	AllowFolder []string `placeholder:"DIR" sep:"none" help:"A folder that file URLs may lead into; may be given several times."`
	bagWork
}

func (c *bagFetchCmd) Run(a *app) error {
	allowed, err := a.allowed(c.AllowHost, c.AllowFolder)
	if err != nil {
		return err
	}
	m := c.meter(a, "fetch")
	did, err := bags.Fetch(a.ctx, c.Dir, bags.FetchOptions{Allowed: allowed, Progress: m.report})
	m.close()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.json(did); err != nil {
			return err
		}
	} else {
		for _, f := range did.Failed {
			fmt.Fprintf(a.out, "error: %s: %s: %s\n", f.Path, f.URL, f.Text)
		}
		fmt.Fprintf(a.out, "%s: %d files fetched, %d bytes; %d were there, %d failed\n", c.Dir, did.Files, did.Bytes, did.There, len(did.Failed))
	}
	if len(did.Failed) > 0 {
		return exit(exitError)
	}
	return nil
}

// allowed joins what the command line allows with what the workspace around does,
// if there is one.
func (a *app) allowed(hosts, folders []string) (bags.Allowed, error) {
	var all bags.Allowed
	if root, err := engine.Find(a.workspaceDir()); err == nil {
		if all, err = engine.AllowedFetches(root); err != nil {
			return all, err
		}
	}
	all.Hosts = append(all.Hosts, hosts...)
	for _, f := range folders {
		whole, err := absolute(f)
		if err != nil {
			return all, err
		}
		all.Folders = append(all.Folders, whole)
	}
	return all, all.Check()
}

type bagSerializeCmd struct {
	Dir          string `arg:"" help:"The bag's folder."`
	To           string `placeholder:"FILE" help:"The archive to make; default: beside the folder, named like it."`
	Format       string `enum:"zip,tar,tar.gz,tar.zst" default:"tar" help:"zip, tar, tar.gz or tar.zst."`
	Reproducible bool   `help:"Give every member one time, so that the same bag gives the same bytes."`
	Verify       bool   `negatable:"" default:"true" help:"Validate the archive before it gets its name."`
	Sync         bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

// epoch is the one time of reproducible archives: the earliest a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *bagSerializeCmd) Run(a *app) error {
	whole, err := absolute(c.Dir)
	if err != nil {
		return err
	}
	to := c.To
	if to == "" {
		to = whole + "." + c.Format
	}
	o := bags.SerializeOptions{Format: bags.Format(c.Format), Verify: c.Verify, NoSync: !c.Sync}
	if c.Reproducible {
		o.Time = epoch
	}
	m := c.meter(a, "serialize")
	o.Progress = m.report
	r, err := bags.Serialize(a.ctx, whole, to, o)
	m.close()
	if errors.Is(err, bags.ErrNotValid) {
		printReport(a, c.Dir, r)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(r)
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	verified := "written"
	if c.Verify {
		verified = "written and validated"
	}
	fmt.Fprintf(a.out, "%s: %s: %d payload files, %d bytes of archive\n", to, verified, r.PayloadFiles, info.Size())
	return nil
}
