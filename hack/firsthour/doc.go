// Package firsthour runs docs/first-hour.md as a newcomer would: in a clean copy of the repository it runs each block of commands word for
// word, in one shell, and compares what they print with what the page promises. The stack is ended in any case.
//
//	make first-hour
//
// Of the page these are read:
//
//   - A block ```sh is run. No command of it may fail.
//   - A block ```text is what the commands before it print, all of it. In a line … stands for anything; as a line of its own for any number of
//     lines. How many spaces stand between words, and empty lines, do not count.
//   - "within N seconds", in the text between the block before and the commands, is a promise too: the commands are run again until they print
//     what is promised, for N seconds at most. Without it they have one try.
package firsthour
