#!/bin/sh
# Installs what the pages are looked at with: Chromium, and axe-core for the rules of
# accessibility, in .cache. It installs what is missing where it may, and says what is not there:
# tests that need it are skipped then.
set -u
cd "$(dirname "$0")/.." || exit 1
if ! command -v chromium >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		{ apt-get update -q && apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 chromium; } >/dev/null 2>&1
	fi
	command -v chromium >/dev/null 2>&1 || echo 'no Chromium: the pages are not looked at; as root on Debian this script installs it'
fi
axe=4.14.1
if ! grep -q "\"version\": \"$axe\"" .cache/node_modules/axe-core/package.json 2>/dev/null; then
	mkdir -p .cache
	if command -v npm >/dev/null 2>&1; then
		npm install --prefix .cache --no-save --ignore-scripts --no-audit --no-fund "axe-core@$axe" >/dev/null 2>&1
	fi
	[ -f .cache/node_modules/axe-core/axe.min.js ] || echo 'no axe-core: pages are judged by the rules of this project alone; with npm this script installs it'
fi
exit 0
