// Package timetable says when something is due: schedules/NAME.yaml, and what follows from it
// for a moment and a zone.
//
// It owns the format of that file and the reckoning. It must not know what was done, nor a
// clock: the time is always given.
//
//	schema: 1
//	name: nightly-fixity           # as the file
//	description: …
//	trigger: {cron: '30 2 * * *'}  # or every: 6h (also 7d, 1mo), or at: 2026-12-24T18:00:00+01:00,
//	                               # or queue: NAME; of every and queue between: ['20:00', '06:00']
//	zone: Europe/Berlin            # of cron, from and until; UTC
//	from: 2026-12-01               # until: …; nothing is due before, or from then on
//	do: {fixity: items, sample: 5%, older: 8760h}
//	                               # or store, targets, catalogs; every: 90d, rate: 50MiB/s, at: [TARGET], heal: true
//	                               # or command: [robot, arg], with: given to it as JSON;
//	                               # or start: WORKFLOW, where: CONDITION, or queue: NAME, scan: CATALOG, read: READER,
//	                               # deliver: due, dispose: due, feeds: FOLDER
//	parallel: 2                    # of queue and fixity: how much is done at once
//	missed: once                   # skip, all: what fell due while nothing ran; within: 24h, no older
//	overlap: skip                  # wait: what falls due while it runs is done after it;
//	                               # replace: instead of it
//	timeout: 4h
//	keep: 90d                      # of the logs of its firings
//
// # Clocks
//
// A cron line names times of the wall. One that the clock leaves out in spring is due right
// after; an hour that autumn repeats is due the first time only, unless the line is for every
// hour (*, */n): then in both. every is counted from the end of the last firing, at is due
// once.
package timetable
