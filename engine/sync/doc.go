// Package sync lets several workspaces work on one history: sites.
//
// It owns sites/NAME.json, the branches site/NAME, and the commits that join histories. It
// must not know what a step does, nor how a record is joined: that is package guard's, which
// holds the same joins against what others push.
//
// # Sites
//
// A site is named in its repository's configuration, bagpipe.site, with a random mark, and in
// sites/NAME.json, committed:
//
//	{
//	  "clone": true,                 it was begun as a copy; absent: not
//	  "mark": "5c1e9a7000112233",
//	  "name": "lab",
//	  "schema": 1
//	}
//
// Its commits end in Bagpipe-Site, its attempts' runner is HOST:PID at SITE. Nobody declares
// another site's attempts lost, and the engines of one site alone, that which admitted the
// item or was given it, do an item's steps. What bears no name is that of the workspace that
// was no clone. A workspace without a name does nothing for a site: it may be restored from an
// old copy of the site's history, and says so before it goes on as that site.
//
// Nothing here outlives a call, and no lock is needed but the store's.
package sync
