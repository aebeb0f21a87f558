package pages

import (
	"net/http"

	"bagpipe/engine/ask"
	"bagpipe/engine/state"
)

type overviewView struct {
	ask.Status
	Whole bool // the account reaches every collection
}

// overview shows how the workspace stands.
func (p *Pages) overview(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	f, err := p.d.Filter(ctx, nil)
	if err != nil {
		return "", nil, err
	}
	s, err := p.d.Status(ctx, f)
	if err != nil {
		return "", nil, err
	}
	v := overviewView{Status: s.Said(p.d.Words), Whole: p.d.Whole(ctx) == nil}
	return "overview", v, nil
}

// cell is one number of a grid, and where its items are listed.
type cell struct {
	N    int
	Kind string
	Path string
}

// gridHeads are the columns of a grid.
func gridHeads() []string {
	return []string{"waiting", "ready", "for a person", "in progress", "failed", "skipped", "completed"}
}

func gridCells(workflow string, row ask.GridRow) []cell {
	items := func(status state.Status) cell {
		return cell{row.Counts[status], string(status), "items?" + query("workflow", workflow, "step", row.Step, "status", status)}
	}
	queue := func(n int, kind, who string) cell {
		return cell{n, kind, "queues/" + workflow + "/" + string(row.Step) + "?for=" + who}
	}
	return []cell{items(state.Waiting), queue(row.Ready, "ready", ask.Robots), queue(row.Manual, "person", ask.People),
		items(state.InProgress), items(state.Failed), items(state.Skipped), items(state.Completed)}
}
