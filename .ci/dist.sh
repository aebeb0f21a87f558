#!/bin/sh
# make dist: for each architecture a static binary in an archive and a Debian package, with
# the manual pages, completions, the unit, example settings, alert rules and a dashboard; checksums, and what the
# binary is made of (CycloneDX). dist.sh VERSION [ARCH…]
set -eu
cd "$(dirname "$0")/.."
version=$1
shift
go=${GO:-go}
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

rm -rf dist
mkdir -p dist
# The texts are the same for all: made by a program of this machine.
CGO_ENABLED=0 $go build -trimpath -tags otel -ldflags "-X main.version=$version" -o dist/.bagpipe ./cmd/bagpipe

for arch in "${@:-amd64 arm64}"; do
	for arch in $arch; do
		name=bagpipe-$version-linux-$arch
		stage=dist/$name
		mkdir -p "$stage/completion" "$stage/examples"
		CGO_ENABLED=0 GOOS=linux GOARCH=$arch $go build -trimpath -tags otel -ldflags "-s -w -X main.version=$version" -o "$stage/bagpipe" ./cmd/bagpipe
		dist/.bagpipe man --to "$stage/man"
		for shell in bash zsh fish; do
			dist/.bagpipe completion $shell >"$stage/completion/bagpipe.$shell"
		done
		cp LICENSE README.md CHANGELOG.md testdata/packaging/bagpipe.service "$stage/"
		cp -r docs "$stage/docs"
		cp -r templates/bagpipe.yaml templates/workflows templates/rules testdata/monitoring "$stage/examples/"
		GOFLAGS=-mod=mod $go run "$cyclonedx" bin -json -std -noserial -version "$version" -output "dist/$name.cdx.json" "$stage/bagpipe" 2>dist/.log || { cat dist/.log; exit 1; }
		tar -C dist --sort=name --owner=0 --group=0 --numeric-owner -czf "dist/$name.tar.gz" "$name"
		# A Debian version begins with a digit.
		case ${version#v} in [0-9]*.*) debian=${version#v} ;; *) debian=0.0.0+$version ;; esac
		sed "s|\${ARCH}|$arch|; s|\${VERSION}|$debian|; s|\${STAGE}|$stage|" testdata/packaging/nfpm.yaml >dist/.nfpm.yaml
		GOFLAGS=-mod=mod $go run "$nfpm" package --packager deb --config dist/.nfpm.yaml --target dist/ >dist/.log || { cat dist/.log; exit 1; }
		rm -r "$stage"
	done
done
rm dist/.bagpipe dist/.nfpm.yaml dist/.log
(cd dist && sha256sum -- * >SHA256SUMS)
ls dist
