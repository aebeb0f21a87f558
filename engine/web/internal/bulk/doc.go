// Package bulk owns acts on many items: what is seen beforehand, what is done then, and what
// was refused.
//
// It must not know what an act means (desk), nor who is shown it. A preview notes the stamp of
// each item; one that changed since is refused. Work goes on when its browser has gone, and
// ends with the process: each act is a commit of its own, so what was done stands.
//
// Acts has one lock, which guards the previews and the work.
package bulk
