package ruleset

// ChangesOf returns the ports that differ between two states, by whatever key they have there.
func ChangesOf[K comparable](before, after map[K]*Port) (changes []PortChange) {
	for k, was := range before {
		if is := after[k]; is == nil || !is.Equal(was) {
			changes = append(changes, PortChange{Before: was, After: is})
		}
	}
	for k, is := range after {
		if before[k] == nil {
			changes = append(changes, PortChange{After: is})
		}
	}
	return changes
}
