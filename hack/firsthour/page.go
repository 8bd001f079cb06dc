package firsthour

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// step is a block of commands of a page, and what it promises of them.
type step struct {
	line     int // of the first command
	commands string
	within   time.Duration // until it prints what is promised; 0: at once
	promised *block        // nil: anything may be printed
}

// block is the text of a fenced block.
type block struct {
	line  int // of its first line
	lines []string
}

var promisedTime = regexp.MustCompile(`(?i)\bwithin (\d+) seconds\b`)

// parse returns the steps of a page in Markdown. Its errors begin with the number of the line. Blocks of other languages than sh and text are
// refused: nobody would notice that they are not run.
func parse(page string) ([]step, error) {
	var steps []step
	var open *block // the block that we are in
	var language, prose string
	for i, text := range strings.Split(page, "\n") {
		number := i + 1
		fence, isFence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case !isFence && open != nil:
			open.lines = append(open.lines, text)
		case !isFence:
			prose += text + " "
		case open == nil:
			open, language = &block{line: number + 1}, fence
		case language == "sh":
			within, err := timeIn(prose)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", open.line, err)
			}
			steps = append(steps, step{line: open.line, commands: strings.Join(open.lines, "\n") + "\n", within: within})
			open, prose = nil, ""
		case language == "text":
			if len(steps) == 0 || steps[len(steps)-1].promised != nil {
				return nil, fmt.Errorf("%d: a text block comes after the commands that print it, one for each block of commands", open.line)
			}
			steps[len(steps)-1].promised = open
			open, prose = nil, ""
		default:
			return nil, fmt.Errorf("%d: block of %q: sh and text are allowed", open.line-1, language)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%d: the block that begins here does not end", open.line-1)
	}
	return steps, nil
}

// timeIn returns the time that prose promises, or 0.
func timeIn(prose string) (time.Duration, error) {
	found := promisedTime.FindAllStringSubmatch(prose, -1)
	if len(found) == 0 {
		return 0, nil
	}
	if len(found) > 1 {
		return 0, fmt.Errorf("the text before promises more than one time")
	}
	seconds, err := strconv.Atoi(found[0][1])
	return time.Duration(seconds) * time.Second, err
}
