// Package warrant says whether an item may be disposed of: by whom that was proposed, who
// approved it, and for how long items are kept.
//
// It owns the files of disposals/. It must not know how bytes are removed, nor an index.
// Values do not change once they are read; no lock guards them.
//
// disposals/KEY.json, KEY being that of an intent:
//
//	{
//	  "at": "…", "authority": "Schedule 12.3", "by": "NAME <ADDRESS>",
//	  "items": {"3fa9c0d2e1b7a45": {"collection": "maps", "label": "plate-7", "rule": "images/1"}},
//	  "reason": "kept for ten years", "schema": 1
//	}
//
// disposals/KEY/ADDRESS.json, percent-encoded; it counts if somebody of that address committed
// it, and if KEY.json is what its digest says:
//
//	{"proposal": "sha256:…", "says": "approved", "schema": 1, "text": "…"}     or "refused"
//
// # The rules
//
// A proposal is approved once as many persons approved it as the rules of its items ask for,
// two where none fits. The proposer is none of them, and a person with several addresses, by
// feeds/people, is one. One person's refusal ends it. A proposal that was changed afterwards
// has no approvals: they name its digest.
package warrant
