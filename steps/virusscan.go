package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/steps/clamd"
)

const clamdAddress = "unix:/run/clamav/clamd.ctl" // Debian's

// virusScan has a clamd look at every file. One in which something is found fails the step,
// kind content; one that was not scanned is told, and fails it where the parameter
// unscanned is "fail". It is a check of the object's quality, too.
func virusScan(ctx context.Context, c *Call) (Result, error) {
	p, err := virusParams(c.With)
	if err != nil {
		return Result{}, err
	}
	tree, err := object(ctx, c)
	if err != nil {
		return Result{}, failure(err)
	}
	if err := tree.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	engine, err := p.client.Version(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		res := Result{Checks: virusCheck(layout.QualityNotReached, "no clamd answers")}
		if p.goOn {
			res.Status, res.Message = Skipped, fmt.Sprintf("not applicable: no clamd answers: %v", err)
			return res, nil
		}
		return res, &Unavailable{err}
	}
	hides, err := p.client.Hides(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("ask clamd for its limits: %w", err)
	}
	said := map[string]clamd.Answer{}
	counts := map[string]int64{}
	first := map[string]string{}
	for _, f := range tree.Files {
		path := layout.EncodePath(f.Path)
		a, err := scanFile(ctx, p.client, tree.At(f.Path), f.Size)
		if err != nil {
			return Result{}, fmt.Errorf("scan %s: %w", path, err)
		}
		if a.Verdict == clamd.Clean && hides != "" {
			a = clamd.Answer{Verdict: clamd.NotScanned, Text: hides}
		}
		said[path] = a
		if counts[a.Verdict]++; counts[a.Verdict] == 1 {
			first[a.Verdict] = path + ": " + a.Text
		}
		if a.Verdict != clamd.Clean {
			c.logf("%s: %s: %s", path, a.Verdict, a.Text)
		}
	}
	out, err := virusReport(c, engine, said)
	if err != nil {
		return Result{}, failure(err)
	}
	res := Result{Outputs: out, Message: fmt.Sprintf("%d clean, %d not scanned, by %s", counts[clamd.Clean], counts[clamd.NotScanned], engine),
		Metadata: map[string]any{"viruses": map[string]any{"clean": counts[clamd.Clean], "found": counts[clamd.Found], "notScanned": counts[clamd.NotScanned], "engine": engine}}}
	text := fmt.Sprintf("%d clean, %d found, %d not scanned", counts[clamd.Clean], counts[clamd.Found], counts[clamd.NotScanned])
	res.Checks = virusCheck(layout.QualityPass, text)
	switch {
	case counts[clamd.Found] > 0:
		res.Checks = virusCheck(layout.QualityFail, text+"; found first: "+first[clamd.Found])
		return res, ContentFailure("found in %s, first: %s", layout.Count(counts[clamd.Found], "file"), first[clamd.Found])
	case counts[clamd.NotScanned] == 0:
		return res, nil
	}
	res.Checks = virusCheck(layout.QualityNotReached, text+"; not scanned first: "+first[clamd.NotScanned])
	if p.strict {
		return res, SystemFailure("%s not scanned, first: %s", layout.Count(counts[clamd.NotScanned], "file"), first[clamd.NotScanned])
	}
	return res, nil
}

func virusCheck(result, text string) []Check {
	return []Check{{ID: "viruses", Level: "total.usable", Result: result, Text: text}}
}

func scanFile(ctx context.Context, client clamd.Client, path string, size int64) (clamd.Answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return clamd.Answer{}, err
	}
	defer f.Close()
	return client.Scan(ctx, f, size)
}

func virusReport(c *Call, engine string, said map[string]clamd.Answer) ([]Output, error) {
	data, err := layout.EncodeJSON(map[string]any{"schema": 1, "engine": engine, "files": said})
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Scratch, reportOut)
	err = errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "virus-scan.json"), data, 0o644))
	return []Output{{From: reportOut, To: layout.RelPath(layout.DerivedDir + "/" + string(c.Step))}}, err
}

type virusDoes struct {
	client clamd.Client
	strict bool
	goOn   bool // where no clamd answers
}

func virusParams(with map[string]any) (p virusDoes, err error) {
	if p.client.Address, err = stringParam(with, "address"); err != nil {
		return p, err
	}
	p.client.Address = cmp.Or(p.client.Address, clamdAddress)
	if !strings.Contains(p.client.Address, ":") {
		return p, wrongParam("address", "want unix:/PATH or HOST:PORT, got %q", p.client.Address)
	}
	if p.client.Time, err = durationParam(with, "time"); err != nil {
		return p, err
	}
	unscanned, err := stringParam(with, "unscanned")
	if err == nil && unscanned != "" && unscanned != "warn" && unscanned != "fail" {
		err = wrongParam("unscanned", "want warn or fail, got %q", unscanned)
	}
	p.strict = unscanned == "fail"
	if err != nil {
		return p, err
	}
	unavailable, err := stringParam(with, "unavailable")
	if err == nil && unavailable != "" && unavailable != "fail" && unavailable != "skip" {
		err = wrongParam("unavailable", "want fail or skip, got %q", unavailable)
	}
	p.goOn = unavailable == "skip"
	return p, err
}
