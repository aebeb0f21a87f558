package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A running service answers machines that watch it; the documentation names every metric, and
// the alert rules no other.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	free, err := net.Listen("tcp", "localhost:0")
	b.must(err)
	addr := free.Addr().String()
	b.must(free.Close())
	b.drop("zip")
	service := b.start("run", "--watch", "--metrics", addr)
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			return 0, ""
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		b.must(err)
		return resp.StatusCode, string(body)
	}
	b.await("the drop to be done", func() bool {
		_, text := get("/metrics")
		return strings.Contains(text, `bagpipe_steps_ended_total{workflow="accession",step="cleanup",status="completed"} 1`+"\n")
	})
	_, text := get("/metrics")
	for _, want := range []string{"bagpipe_items 1\n", `bagpipe_drops_total{outcome="admitted"} 1` + "\n", "bagpipe_engines 1\n", "bagpipe_healthy 1\n",
		`bagpipe_steps{workflow="accession",step="deposit",status="completed"} 1` + "\n", `bagpipe_free_bytes{of="workspace"} `,
		`bagpipe_commit_seconds_total{part="build"} 0.`, `bagpipe_commit_seconds_total{part="pack"} 0.`, `bagpipe_commit_seconds_total{part="sync"} 0.`, `bagpipe_commit_seconds_total{part="branch"} 0.`, "bagpipe_commits_total 1", `bagpipe_step_run_seconds_total{workflow="accession",step="bag",status="completed"} 0.`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if code, body := get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	b.must(err)
	rules, err := os.ReadFile("../../testdata/monitoring/alerts.yaml")
	b.must(err)
	dashboard, err := os.ReadFile("../../testdata/monitoring/dashboard.json")
	b.must(err)
	if !json.Valid(dashboard) {
		t.Error("dashboard.json is no JSON")
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
		if !strings.Contains(string(docs), "| `"+m[1]+"`") {
			t.Errorf("docs/operations.md does not name %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`bagpipe_[a-z_]+`).FindAllString(string(rules)+string(dashboard), -1) {
		if !named[m] {
			t.Errorf("an alert or the dashboard names %s, which no scrape has", m)
		}
	}
	if quoted := strings.Count(string(rules), `annotations: {summary: "`); quoted != strings.Count(string(rules), "annotations:") {
		t.Error("an alert's summary stands without quotes: a comma in it would begin another annotation")
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed (Debian's package prometheus): its checks are skipped")
	} else {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool check metrics: %s", out)
		}
		if out, err := exec.Command(promtool, "check", "rules", "../../testdata/monitoring/alerts.yaml").CombinedOutput(); err != nil {
			t.Errorf("promtool check rules: %s", out)
		}
	}
	b.must(service.cmd.Process.Signal(syscall.SIGTERM))
	service.code(0)
	b.start("run", "--metrics", addr).code(2)
	b.start("run", "--watch", "--metrics", "nonsense").code(2)
}
