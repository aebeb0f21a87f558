package admin

import (
	"context"
	"errors"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine/catalog"
	"bagpipe/engine/doctor"
)

// Doctor looks at what a workspace stands on.
type Doctor struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints what was found; exit code 1 when something does not work.
func (c *Doctor) Run(ctx context.Context, on *screen.Screen, open Open) error {
	e, err := open(ctx)
	if err != nil {
		return err
	}
	deposits := func(string) bool { return false }
	if err := e.Index.Load(ctx); err == nil { // else the other findings are wanted all the more
		deposits = func(own string) bool { _, before := e.Attempt.OldestDeposit(own); return before }
	}
	found := doctor.New(e.Ledger, e.Settings, deposits).Look(ctx)
	if !e.Ledger.Clone {
		found = append(found, catalogFindings(e.Catalog)...)
	}
	if err := errors.Join(c.print(on, found), e.Close()); err != nil {
		return err
	}
	for _, f := range found {
		if f.State == doctor.Wrong {
			return screen.ExitError
		}
	}
	return nil
}

// catalogFindings tell of the catalogs that want a person.
func catalogFindings(k *catalog.Keeper) (found []doctor.Finding) {
	troubled, err := catalog.Troubled(k)
	if err != nil {
		found = append(found, doctor.Finding{About: "catalog", State: doctor.Wrong, Text: err.Error()})
	}
	for _, t := range troubled {
		for _, line := range CatalogLines(t) {
			found = append(found, doctor.Finding{About: "catalog", State: doctor.Poor, Text: line})
		}
	}
	return found
}

func (c *Doctor) print(on *screen.Screen, found []doctor.Finding) error {
	if c.JSON {
		return on.JSON(found)
	}
	t := screen.NewTable("state", "about", "")
	for _, f := range found {
		t.Row(f.State, f.About, f.Text)
	}
	return t.Print(on.Out)
}
