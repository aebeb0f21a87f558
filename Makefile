# Bagpipe. On a fresh machine with Go and Git: make demo, make test.

GO      ?= go
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo 0.1.0-dev+$$(git describe --always --dirty 2>/dev/null || echo unknown))
BIN     := bin/bagpipe
SOURCES := $(shell find . -name '*.go' -not -path './demo/*') go.mod go.sum $(shell find templates -type f)

.PHONY: build demo test tools check bench soak dist clean

build: $(BIN)

$(BIN): $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o $@ ./cmd/bagpipe

# The main job on real input, in ./demo; it replaces only what it made itself.
demo: $(BIN)
	@./testdata/demo/run.sh

TESTED = $$($(GO) list ./... ./testdata/sample | grep -v '/cmd/bagpipe$$')

# The pages are looked at in a browser, where one can be had. What is long in a test is
# short, and whole in make soak; scripts wait for processes, so that more than one runs on
# each processor.
test:
	@./testdata/browser.sh
	$(GO) test -short -timeout 20m $(TESTED)
	$(GO) test -parallel 4 -timeout 40m ./cmd/bagpipe

# The programs of others that tests and bench compare with, from Debian's packages, as root;
# without them those tests are skipped, and say so.
tools:
	@./testdata/tools.sh

# What continuous integration runs: form, analysis, the tests with the race
# detector, and that go.mod is as the sources need it.
check:
	@./.ci/check.sh

# Figures, with the peers and the floor beside them. Not part of check.
bench:
	$(GO) run ./engine/gitstore/internal/bench
	$(GO) run ./engine/gitstore/internal/bench -history -items 100000
	$(GO) run ./engine/gitstore/internal/bench -fanout -items 1000,100000
	$(GO) run ./engine/internal/bench
	$(GO) run ./engine/internal/queuebench
	$(GO) run ./engine/web/internal/bench -items 1000000 -files 100000
	$(GO) run ./bags/internal/bench
	$(GO) test -run '^$$' -bench . -benchtime 3x ./bags ./bags/archive ./steps/views ./engine/inbox ./engine/claim ./engine/queue ./engine ./engine/audit ./engine/fixity ./engine/export ./engine/delivery
	$(GO) test -run '^$$' -bench . -benchtime 1x ./steps/target
	$(GO) test -run '^$$' -bench . -benchtime 200x ./engine/search -args -items 100000
	$(GO) test -run '^$$' -bench . -benchtime 2000x ./engine/remote/bus
	BAGPIPE_BENCH=1 $(GO) test -count=1 -timeout 60m -v -run TestFiguresOfWorkers ./cmd/bagpipe

# Long runs: hundreds of kills, random histories, a million items; an hour of them are those of a fleet, and a day is that of 500 viewers.
soak: $(BIN)
	$(GO) test -timeout 60m $(TESTED)
	$(GO) test -race -timeout 30m ./cmd/bagpipe
	$(GO) run ./engine/gitstore/internal/bench -items 1000000
	$(GO) run ./engine/gitstore/internal/bench -history -items 1000000
	$(GO) run ./engine/gitstore/internal/bench -fanout -items 1000000
	$(GO) run ./engine/internal/queuebench -items 1000000
	$(GO) test -timeout 0 -run TestJoinLaws ./engine/sync -triples 200000
	$(GO) test -timeout 0 -run TestRewritten ./engine/audit -histories 2000
	BAGPIPE_SOAK=1 $(GO) test -timeout 240m -run 'Soak|Laws|Kill|Foreign|ServeCounts|BehindMany|ManyFailures|Outlive|AgainstAModel|IndexIsTheScan|CutAnywhere|Fold|PowerCut' -count=1 ./...
	$(GO) run ./engine/web/internal/bench -items 100000 -files 0 -only soak -soak 24h

# Packages for release, in ./dist.
dist:
	@GO='$(GO)' ./.ci/dist.sh '$(VERSION)'
	@$(GO) test -count=1 -run TestThePackageInstalls ./cmd/bagpipe

clean:
	rm -rf bin .cache dist
