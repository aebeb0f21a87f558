#!/bin/sh
# make check: format, vet, staticcheck, govulncheck where it can run, the tests
# with the race detector, and a tidy go.mod. Everything it needs comes through
# the module proxy.
set -eu
cd "$(dirname "$0")/.."

# As make build builds: what the tests, the analyses and the demo compile is one.
export CGO_ENABLED=0 GOFLAGS=-trimpath

say() { printf '== %s\n' "$*"; }

say gofmt
bad=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$bad" ]; then
	printf 'not formatted:\n%s\n' "$bad"
	exit 1
fi

say vet
go vet ./... ./testdata/sample/... ./testdata/content/...

say staticcheck
go tool staticcheck ./... ./testdata/sample/... ./testdata/content/...

# What make test runs, with the race detector where that can be: cmd/bagpipe starts
# thousands of processes, which it makes ten times as slow; its own run with it is in
# make soak. The two that start no goroutine have no race. Tests wait for each other, so
# that more packages than processors are tested at once.
#
# Their folders lie in memory where it has room and programs may be run there: syncing
# and renaming on a disk takes more of the processor than all else that the system does
# for them. make test and the demo below are on the disk. A process that the race
# detector looks at sleeps for a second before it ends, unless it is told otherwise.
say tests
./testdata/browser.sh
free() { awk -v want=8000000 '$1 == "MemAvailable:" { exit $2 < want }' /proc/meminfo && [ "$(df -Pk "$1" | awk 'END { print $4 }')" -gt 6000000 ]; }
if free /dev/shm 2>/dev/null && dir=$(mktemp -d /dev/shm/bp.XXXXXX); then
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\n' >"$dir/run" && chmod +x "$dir/run"
	if "$dir/run" 2>/dev/null; then
		chmod 1777 "$dir" # as /tmp is: tests act as other accounts
		export TMPDIR="$dir"
	fi
fi
export GORACE=atexit_sleep_ms=50
alone='/engine/state$|/testdata/sample$'
go test -vet=off -short -timeout 30m $(go list ./... ./testdata/sample | grep -E "$alone")
CGO_ENABLED=1 go test -vet=off -race -short -p 3 -timeout 30m $(go list ./... ./testdata/sample | grep -vE "/cmd/bagpipe\$|$alone")
go test -vet=off -parallel 4 -timeout 40m ./cmd/bagpipe
go vet -tags otel ./cmd/bagpipe/... # what packages are built with
go test -vet=off -tags otel ./cmd/bagpipe/internal/tracing

# The demo's figures follow the shipped workflow. In a folder of its own: ./demo may
# be one that somebody works on.
say 'make demo'
mkdir -p .cache
make build >/dev/null
./testdata/demo/run.sh .cache/demo >.cache/demo.out || { tail -n 20 .cache/demo.out; exit 1; }

say 'go.mod is tidy'
go mod tidy -diff

# The vulnerability data base is on the network; where it cannot be reached that
# is said, and is no failure of the sources.
say govulncheck
if go tool -n govulncheck >/dev/null 2>&1; then
	if out=$(go tool govulncheck ./... 2>&1); then
		echo 'no known vulnerabilities'
	else
		case $out in
		*'Vulnerability #'*) printf '%s\n' "$out"; exit 1 ;;
		*) printf 'not run: %s\n' "$(printf '%s' "$out" | head -1)" ;;
		esac
	fi
else
	echo 'not run: govulncheck is not among the tools of go.mod'
fi
say done
