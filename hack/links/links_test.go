// Package links has no program: its test is that links between documents of the repository lead somewhere.
package links

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
	named   = regexp.MustCompile(`<a name="([^"]+)">`)
	code    = regexp.MustCompile("`[^`]*`")
	texts   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`) // in a heading the text of a link counts
)

func TestLinks(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range strings.Fields(string(files)) {
		content, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range prose(string(content)) {
			for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				if err := leads(file, match[1]); err != nil {
					t.Errorf("%s:%d: %s: %v", file, i+1, match[1], err)
				}
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d links were found: there were over 500 when this was written", found)
	}
}

// prose returns the lines of a document, those of blocks of code as empty ones.
func prose(document string) []string {
	lines, inside := strings.Split(document, "\n"), false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			inside = !inside
		}
		if fence || inside {
			lines[i] = ""
		}
	}
	return lines
}

// leads returns an error if a link of a file leads nowhere within the repository.
func leads(file, target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if u.Scheme != "" {
		return nil // not ours
	}
	to := file
	if u.Path != "" {
		to = path.Join(path.Dir(file), u.Path)
	}
	info, err := os.Stat(filepath.Join(root, to))
	if err != nil {
		return fmt.Errorf("%s does not exist", to)
	}
	if u.Fragment == "" {
		return nil
	}
	if info.IsDir() || path.Ext(to) != ".md" {
		return fmt.Errorf("%s has no headings", to)
	}
	content, err := os.ReadFile(filepath.Join(root, to))
	if err != nil {
		return err
	}
	if !anchors(string(content))[u.Fragment] {
		return fmt.Errorf("%s has no heading #%s", to, u.Fragment)
	}
	return nil
}

// anchors are the fragments that a link can have in a document: of headings as GitHub makes them, and those of <a name>.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, line := range prose(document) {
		for _, match := range named.FindAllStringSubmatch(line, -1) {
			found[match[1]] = true
		}
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		anchor := slug(texts.ReplaceAllString(match[1], "$1"))
		for next, n := anchor, 1; ; n++ {
			if !found[next] {
				found[next] = true
				break
			}
			next = fmt.Sprintf("%s-%d", anchor, n)
		}
	}
	return found
}

// slug is what GitHub makes of a heading: small letters, digits, - and _, with - for each space.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestDeadLinksAreFound(t *testing.T) {
	for target, want := range map[string]string{
		"policies.md":               "",
		"policies.md#status":        "",
		"../README.md#use-it":       "",
		"operations.md#alerts":      "", // <a name>
		"https://example.com/#x":    "",
		"nowhere.md":                "docs/nowhere.md does not exist",
		"policies.md#nowhere":       "docs/policies.md has no heading #nowhere",
		"../hack/manifests#nowhere": "hack/manifests has no headings",
		"#which-objects-it-governs": "docs/dns.md has no heading #which-objects-it-governs",
	} {
		err := leads("docs/dns.md", target)
		if fmt.Sprint(err) != want && (want != "" || err != nil) {
			t.Errorf("%s: %v, wanted %q", target, err, want)
		}
	}
}
