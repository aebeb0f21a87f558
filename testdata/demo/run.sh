#!/bin/sh
# run.sh [DIR]: the main job on real input, in ./demo, or in DIR below this
# checkout. Needs Go, Git and bin/bagpipe; make demo runs it.
#
# The rules are:
#   - the folder is replaced only if it has the marker that this script leaves there;
#   - every part is headed by the command as a person types it;
#   - what a part shows is checked; the first thing that is off ends the demo with
#     exit code 1.
set -u
cd "$(dirname "$0")/../.." || exit 1

demo=${1:-demo}
marker=$demo/.made-by-make-demo
stage=$demo/.stage
out=$demo/.out

die() {
	printf '\nThe demo failed: %s\n' "$*" >&2
	exit 1
}

head_of() { printf '\n== %s\n' "$*"; }

# show CODE COMMAND: prints the command, runs it, prints what it says, and wants
# that exit code. What it said is in $out for has and lines.
show() {
	printf '\n$ %s\n' "$2"
	eval "$2" >"$out" 2>&1
	code=$?
	cat "$out"
	[ "$code" -eq "$1" ] || die "exit code $code where $1 was expected: $2"
}

# has TEXT…: the last output holds each of them.
has() {
	for text; do
		grep -qF -e "$text" "$out" || die "this was expected above: $text"
	done
}

# lines N TEXT: so many lines of the last output hold it.
lines() {
	n=$(grep -cF -e "$2" "$out")
	[ "$n" -eq "$1" ] || die "$n lines above hold \"$2\", $1 were expected"
}

# row STEP NUMBERS: a row of the status grid, its spaces reduced to one.
row() {
	tr -s ' ' <"$out" | grep -q "^$1 $2\( \|\$\)" || die "the row \"$1 $2\" was expected in the grid above"
}

replace_demo() {
	if [ -e "$demo" ] || [ -L "$demo" ]; then
		[ -f "$marker" ] && [ ! -L "$demo" ] ||
			die "./$demo is there and was not made by make demo; move it away"
		running=$(bin/bagpipe -C "$demo" status 2>/dev/null | sed -n '1s/.*, \([0-9]*\) engines\{0,1\} running$/\1/p')
		[ "${running:-0}" -eq 0 ] || die "a bagpipe is running in ./$demo; stop it first"
		chmod -R u+w "$demo" && rm -rf "$demo" || die "cannot remove ./$demo"
	fi
	mkdir "$demo" && : >"$marker" || die "cannot make ./$demo"
}

[ -x bin/bagpipe ] || die 'bin/bagpipe is not there: make build'
command -v git >/dev/null || die 'git is not there'
replace_demo

head_of 'A workspace, and a collection whose items a person approves'
show 0 "bin/bagpipe init $demo"
show 0 "sed -i 's/quiet: 30s/quiet: 2s/' $demo/bagpipe.yaml"
show 0 "bin/bagpipe -C $demo collection add reading-room --approval approve"

head_of 'Ten drops: good ones, and three that are not'
${GO:-go} run ./testdata/sample/cmd "$stage" folder zip tar.gz tar.zst bag bag.zip \
	bag-wrong-digest parent.zip truncated.tar.gz file || die 'the inputs could not be made'
show 0 "mv '$stage/Lettre à Zoé.txt' $demo/inbox/reading-room/"
show 0 "mv $stage/* $demo/inbox/default/"
rmdir "$stage"
show 0 "ls -1 $demo/inbox/default $demo/inbox/reading-room"

head_of 'The run; exit code 4 says that some items failed'
show 4 "bin/bagpipe -C $demo run"
has '10 drops taken in, 0 rejected' '3 failed' '1 step waits for a person'

head_of 'How it stands'
show 0 "bin/bagpipe -C $demo status"
has '10 items, 0 held, 0 rejected drops, 0 engines running'
#              waiting in-progress completed skipped failed
row register  '\. \. 10 \. \.'
row unpack    '\. \. 4 4 2'
row validate  '2 \. 2 5 1'
row inventory '3 \. 7 \. \.'
row approve   '4 \. \. 6 \.'
row bag       '4 \. 6 \. \.'
row deposit   '4 \. 6 \. \.'
row shelve    '4 \. \. 6 \.'
row publish   '4 \. \. 6 \.'
row cleanup   '4 \. 6 \. \.'

head_of 'What failed, and why'
show 0 "bin/bagpipe -C $demo items --status failed"
lines 3 failed
has 'parent.zip: ../../escaped.txt: parent-path' 'truncated.tar.gz: letters/pictures/Plate 1.png: truncated' \
	'data/register/register.csv: mismatch'

head_of 'Who waits for a person'
show 0 "bin/bagpipe -C $demo queue"
lines 1 person
has 'Lettre à Zoé.txt'

head_of 'The history of one item, and the same by plain Git'
show 0 "bin/bagpipe -C $demo log letters.zip"
lines 16 '(default/letters.zip)'
has 'register: completed' 'unpack: in-progress' 'unpack: completed' 'approve: skipped' 'cleanup: completed'
bin/bagpipe -C "$demo" show letters.zip >"$out" || die 'show letters.zip'
item=$(sed -n 's/^item  *\([0-9a-f]*\) *$/\1/p' "$out")
folder=$(sed -n 's/^folder  *\([^ ]*\) *$/\1/p' "$out")
[ -n "$item" ] && [ -n "$folder" ] || die 'show names no item or no folder'
show 0 "git -C $demo log --format='%h  %ci  %s  [%an]' -- $folder"
lines 16 '(default/letters.zip)'
show 0 "git -C $demo log -1 --grep='^Bagpipe-Item: $item\$'"
has "Bagpipe-Item: $item" 'Bagpipe-Step: cleanup' 'Bagpipe-To: completed'

head_of 'A deposited bag, validated where it lies'
show 0 "bin/bagpipe bag validate $demo/store/${folder#items/}"
has ': valid: BagIt 1.0, 11 payload files'

head_of "Git's own opinion of the repository: nothing to say"
show 0 "git -C $demo fsck --strict --no-dangling"
[ ! -s "$out" ] || die 'git fsck had something to say'
[ -z "$(ls -A $demo/intake)" ] || die "something was left in $demo/intake"
ends=$(git -C "$demo" log --format='%(trailers:key=Bagpipe-To,valueonly,separator=%x20)' | grep -c -e completed -e skipped -e failed)
[ "$ends" -eq 71 ] || die "the history has $ends ends of steps, 71 were expected"

waits=$(bin/bagpipe -C "$demo" queue | sed -n 's/^\([0-9a-f]*\) .* person *$/\1/p')
[ -n "$waits" ] || die 'the item that waits has no identifier'
rm -f "$out"
cat <<END

The demo is done; the workspace stays in ./$demo. To try next:

  bin/bagpipe -C $demo step complete $waits approve -m 'read and agreed'
  bin/bagpipe -C $demo run
  bin/bagpipe -C $demo show $waits

To see it in a browser, open the link that this prints:

  bin/bagpipe -C $demo serve
END
