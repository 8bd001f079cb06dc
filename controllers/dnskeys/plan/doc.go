// Package plan decides when the keys of a zone are made, sign, and go: a roll of one key that signs everything.
//
//	d := plan.Decide(state, plan.DefaultSettings(), plan.Facts{Now: time.Now(), Parent: seen})
//
// A roll (RFC 6781, section 4.1.3, with the waits of RFC 7583, section 3.3.2) takes a new key through
//
//		Published ──caches have it──▶ Active ──the next key is active──▶ Retired ──nobody needs it──▶ gone
//
//	  - Published: in the zone, and signs the keys, so that every cache learns it. The old key signs the zone.
//	  - Active: signs the zone. From now on CDS and CDNSKEY name it, and people are told its DS record.
//	  - Retired: still in the zone. It goes when the answers that it signed have left all caches, the parent zone was seen to have the DS
//	    for the active key and not for this one, and the DS records from before have left all caches, too.
//
// At no time is there a mix of cached DS records, keys and signatures that a validator refuses: at each, all keys that
// any of them names are in all key sets, and every key set is signed by all its keys.
//
// What was traded: each wait allows a day for servers that are cut off from the federation and go on with the keys that they
// had, so a roll takes four days at least. Who waits for the parent zone waits for ever: nothing breaks meanwhile.
// A roll does not change the algorithm. The package is pure.
package plan
