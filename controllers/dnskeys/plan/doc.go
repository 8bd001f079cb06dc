// Package plan decides when the keys of a zone are created, sign, and go: a rollover of one key that signs everything.
//
//	d := plan.Decide(state, plan.DefaultSettings(), plan.Facts{Now: time.Now(), Parent: seen})
//
// A rollover (RFC 6781, section 4.1.3, with the waits of RFC 7583, section 3.3.2) takes a new key through
//
//		Published ──caches have it──▶ Active ──the next key is active──▶ Retired ──nobody needs it──▶ gone
//
//	  - Published: in the zone, and signs the keys, so that every cache learns it. The old key signs the zone.
//	  - Active: signs the zone. From now on CDS and CDNSKEY name it, and an event has its DS record.
//	  - Retired: still in the zone. It goes when the answers that it signed have left all caches, the parent zone has been
//	    seen with the DS of the active key and without this one's, and the earlier DS records have left all caches too.
//
// At no time does a validator refuse any mix of cached DS records, keys and signatures: every key set contains all keys that
// any of them names, and is signed by all its keys.
//
// What was traded: each wait allows a day for servers that are cut off from the federation and keep their old keys, so a
// rollover takes at least four days. The wait for the parent zone has no limit: nothing breaks meanwhile. A rollover does not
// change the algorithm. The package is pure.
package plan
