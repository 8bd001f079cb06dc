// Command bench measures the federation beside a bare client-go program that sends the same requests
// straight to the same members in the same run, and writes the tables into a Markdown file.
//
//	local up --members-only --root _output/bench-stack --clusters 3
//	bench --root _output/bench-stack --into docs/performance.md
//
// It starts and ends the federation itself, because some scenarios need it without controllers, or
// started anew. The scenarios, in the order in which they run:
//
//	b  steady creates: how long from apply until the object is in all members; of two runs each, the second ones
//	   in reverse order
//	p  the same with members in pull mode, beside push
//	h  the same as b at the lowest rate, while one member hangs, again and again: how long until the object is in the others
//	a  objects that are stored already when the controllers start: objects a second
//	c  restart with everything in place: when it is converged, and what it wrote
//	d  workloads of a cluster that dies: when the others have been asked to run them
//
// The bare client is a process of its own (bench bare), so that its CPU seconds can be compared. What it applies is what
// the federation was seen to apply of one ReplicaSet, with defaults and marks.
// Objects are seen by watches on the members, so nothing that the federation says is believed.
//
// What was traded: pods are held back by a scheduling gate. They are created and counted, as the members'
// own controllers do, but never scheduled or run; else the members, which share the cores with the
// federation, would spend nearly all of the CPU on simulated pods.
package main
