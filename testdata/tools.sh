#!/bin/sh
# Installs other people's programs that tests and make bench compare with, from
# Debian's packages. Both do without: what needs one that is missing is skipped and
# says so.
set -eu
cd "$(dirname "$0")/.."
# Another implementation's reader of OCFL, by npm, in .cache.
ocfl=0.2.2
if ! grep -q "\"version\": \"$ocfl\"" .cache/ocfl/node_modules/@ocfl/ocfl-fs/package.json 2>/dev/null; then
	mkdir -p .cache/ocfl
	{ command -v npm >/dev/null 2>&1 && npm install --prefix .cache/ocfl --no-save --ignore-scripts --no-audit --no-fund "@ocfl/ocfl-fs@$ocfl" >/dev/null 2>&1; } ||
		echo "not installed: @ocfl/ocfl-fs; with npm this script installs it"
fi
missing=
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
# Debian has 7z in 7zip, and older releases in p7zip-full.
for seven in 7zz 7z 7za; do command -v $seven >/dev/null 2>&1 && break; done || missing="$missing 7zip"
need unzip unzip
need zip zip
need bsdtar libarchive-tools
need bzip2 bzip2
need xz xz-utils
need zstd zstd
need lz4 lz4
need parallel parallel
need snakemake snakemake
need rsync rsync
need openssl openssl
[ -x /usr/sbin/sshd ] || need sshd openssh-server
need ssh-keygen openssh-client
need xmllint libxml2-utils
need rapper raptor2-utils
need promtool prometheus
need redis-server redis-server
need zsh zsh
need fish fish
need man man-db
need strace strace
need setfacl acl
need tmux tmux
[ -x /usr/sbin/smbd ] || need smbd samba
[ -x /usr/sbin/exim4 ] || need exim4 exim4-daemon-light
/usr/bin/python3 -c 'import feedparser' 2>/dev/null || missing="$missing python3-feedparser"
need smbclient smbclient
need rclone rclone
need btrfs btrfs-progs
python3 -c 'import rdflib' 2>/dev/null || /usr/bin/python3 -c 'import rdflib' 2>/dev/null || missing="$missing python3-rdflib"
need gdalinfo gdal-bin
need cs2cs proj-bin
need clamd clamav-daemon
need pdftoppm poppler-utils
need ffmpeg ffmpeg
[ -n "$missing" ] || { echo 'all there'; exit 0; }
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
	echo "missing:$missing; as root on Debian this script installs them"
	exit 0
fi
apt-get update -q
for package in $missing; do
	apt-get install -qy --no-install-recommends "$package" ||
		{ [ "$package" = 7zip ] && apt-get install -qy --no-install-recommends p7zip-full; } || echo "not installed: $package; its tests are skipped"
done
