package main

import (
	"os"
	"runtime/debug"

	"federation/cmd/internal/process"
)

// While a large zone is read, garbage is several times what is kept, and collecting it would take a third of the time;
// afterwards there is little of it. The numbers are the growth of the heap between collections, in percent.
const (
	largeFile = 8 << 20
	readingGC = 400
	servingGC = 50
)

// collectSeldom prepares for reading a file. GOGC in the environment takes precedence.
func collectSeldom(file string) {
	if info, err := os.Stat(file); err == nil && info.Size() > largeFile {
		setGC(readingGC)
	} else {
		setGC(servingGC)
	}
}

func setGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// giveBack releases memory that reading a zone, or starting, has used.
func giveBack() {
	setGC(servingGC)
	process.GiveBack()
}
