// Package supervisor keeps the parts of a process running: one that fails, or panics, is started again, and the others go on.
//
//	s := supervisor.New()
//	err := s.Run(ctx, "placement", func(ctx context.Context) error { … }) // returns when ctx is done
//	err = s.Check()                                                         // which parts do not run now
//
// A panic ends a process wherever it happens in a goroutine of its own. So what works through a queue does it by ProcessQueue, or
// calls Protect for each item: a panic is then an error of that item, which is tried again, later and later. Other goroutines of a
// part run under Keep, which calls them again, and those of an errgroup under Protected, which ends the part, so that Run starts
// all of it again. Work that comes and goes, such as that in members, is a Group. A loop that looks again at each change, and
// when it is time, is a Wake's Repeat.
// What a part survived is shown beside what failed. A test reads the source: no goroutine is started without one of these.
package supervisor
