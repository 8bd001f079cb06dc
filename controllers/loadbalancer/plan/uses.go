package plan

// uses counts who uses something.
type uses[T comparable] struct {
	number map[T]int
	// before has the numbers of those that have been counted since the last changes, as they were then.
	before map[T]int
}

func newUses[T comparable]() uses[T] { return uses[T]{number: map[T]int{}} }

// add counts so many more, or fewer.
func (u *uses[T]) add(one T, by int) {
	if u.before == nil {
		u.before = map[T]int{}
	}
	if _, counted := u.before[one]; !counted {
		u.before[one] = u.number[one]
	}
	if u.number[one] += by; u.number[one] == 0 {
		delete(u.number, one)
	}
}

// changes returns what is used now and was not at the last call, and the other way round.
func (u *uses[T]) changes() (come, gone []T) {
	for one, before := range u.before {
		switch now := u.number[one]; {
		case before == 0 && now > 0:
			come = append(come, one)
		case before > 0 && now == 0:
			gone = append(gone, one)
		}
	}
	u.before = nil
	return come, gone
}
