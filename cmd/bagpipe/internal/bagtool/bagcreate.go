package bagtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/layout"
)

type bagCreateCmd struct {
	Source    string   `arg:"" writes:"in-place" help:"The folder whose contents become the payload."`
	Dest      string   `arg:"" optional:"" writes:"" help:"The bag's folder to make."`
	InPlace   bool     `help:"Make the folder itself the bag: its contents move into data/."`
	Algorithm []string `placeholder:"NAME" help:"md5, sha1, sha224, sha256, sha384 or sha512; may be given several times. Default: those that the profile requires, or sha256 and sha512."`
	Info      []string `placeholder:"LABEL=VALUE" sep:"none" help:"A line of bag-info.txt; may be given several times."`
	Profile   []string `placeholder:"FILE" sep:"none" help:"A BagIt profile that the bag must satisfy; may be given several times."`
	Link      bool     `help:"Link the files instead of copying them, where the file system can. Then neither may be changed in place."`
	Nest      bool     `help:"Make a bag even of a bag."`
	Sync      bool     `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

// Validate is kong's: it makes these usage errors.
func (c *bagCreateCmd) Validate() error {
	if c.InPlace == (c.Dest != "") {
		return errors.New("give either the bag's folder to make, or --in-place")
	}
	o := bags.CreateOptions{}
	return c.describe(&o)
}

// describe takes what bag-info.txt is to say. The date and the software may be given,
// as for a bag that others began; what is counted may not.
func (c *bagCreateCmd) describe(o *bags.CreateOptions) error {
	fields, err := fieldsOf(c.Info)
	if err != nil {
		return err
	}
	for _, f := range fields {
		switch {
		case strings.EqualFold(f.Label, tagfile.LabelOxum), strings.EqualFold(f.Label, tagfile.LabelSize):
			return fmt.Errorf("%s is counted, not given", f.Label)
		case strings.EqualFold(f.Label, tagfile.LabelBaggingDate):
			if o.Date, err = time.Parse(time.DateOnly, f.Value); err != nil {
				return fmt.Errorf("%s: %q: want a date as 2020-01-31", f.Label, f.Value)
			}
		case strings.EqualFold(f.Label, tagfile.LabelAgent):
			o.Agent = f.Value
		default:
			o.Info = append(o.Info, f)
		}
	}
	return nil
}

func (c *bagCreateCmd) Run(ctx context.Context, on *screen.Screen, agent Agent) error {
	if err := cmp.Or(wantFolder(c.Source), wantPlace(cmp.Or(c.Dest, c.Source)), wantOutsideStore(cmp.Or(c.Dest, c.Source)), wantAlgorithms(c.Algorithm)); err != nil {
		return err
	}
	o, err := c.options(agent)
	if err != nil {
		return err
	}
	m := c.meter(on, "create")
	o.Progress = m.Report
	create := bags.Create
	if c.InPlace {
		create = bags.CreateInPlace
	}
	made, err := create(ctx, o)
	m.Close()
	if err != nil || !c.JSON && made.Recovered == bags.Undone {
		sayRecovered(on, c.Source, made.Recovered)
	}
	var broken *files.Error
	if errors.As(err, &broken) && broken.Rule == files.RuleBag {
		return fmt.Errorf("%w; bagpipe bag update brings its manifests up to date, and --nest makes a bag of it all the same", err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return on.JSON(made)
	}
	bag := c.Dest
	if c.InPlace {
		bag = c.Source
	}
	if made.Recovered == bags.Completed {
		fmt.Fprintf(on.Out, "%s: a create or change that was interrupted is completed; nothing else was done\n", bag)
		return nil
	}
	printFindings(on, made.Findings)
	for _, p := range made.EmptyFolders {
		fmt.Fprintf(on.Out, "warning: data/%s: an empty folder: it is in data/, and in no manifest\n", layout.EncodePath(p))
	}
	fmt.Fprintf(on.Out, "%s: BagIt 1.0, %s, %s\n", bag, screen.Count(made.Files, "payload file"), screen.Count(made.Bytes, "byte"))
	return nil
}

func (c *bagCreateCmd) options(agent Agent) (bags.CreateOptions, error) {
	o := bags.CreateOptions{
		Payload: c.Source, Dest: c.Dest, Date: time.Now(), Agent: string(agent), Link: c.Link, Nest: c.Nest, Sync: c.Sync, NoSync: !c.Sync,
	}
	var err error
	if o.Profiles, err = loadProfiles(c.Profile); err != nil {
		return o, err
	}
	if err := c.describe(&o); err != nil {
		return o, err
	}
	for _, n := range c.Algorithm {
		o.Algorithms = append(o.Algorithms, files.Algorithm(n))
	}
	if len(o.Algorithms) == 0 && len(o.Profiles) > 0 {
		o.Algorithms = o.Profiles[0].Algorithms([]files.Algorithm{files.SHA256, files.SHA512})
	}
	return o, nil
}

func sayRecovered(on *screen.Screen, bag string, was bags.Outcome) {
	if was != "" {
		on.Talk("%s: a create or change that was interrupted is %s", bag, was)
	}
}
