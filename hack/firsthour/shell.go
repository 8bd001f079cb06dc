package firsthour

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// shell is a bash that runs one block of commands after another, as a terminal does: what they export, and what they leave running, stays.
type shell struct {
	cmd   *exec.Cmd
	dir   string // for the commands and their output
	in    io.WriteCloser
	codes *bufio.Reader // of each block, a line with the exit code of the last command that failed, or 0
	runs  int
}

// startShell starts a shell in a directory.
func startShell(directory, scratch string, environment []string) (*shell, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	s := &shell{cmd: exec.Command("bash"), dir: scratch, codes: bufio.NewReader(read)}
	s.cmd.Dir, s.cmd.Env = directory, environment
	s.cmd.ExtraFiles = []*os.File{write} // descriptor 3
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return s, s.cmd.Start()
}

// run runs commands, and returns what they printed, with an error if one of them failed or they did not end in time.
func (s *shell) run(ctx context.Context, commands string) (output string, err error) {
	s.runs++
	script, printed := filepath.Join(s.dir, fmt.Sprintf("%d.sh", s.runs)), filepath.Join(s.dir, fmt.Sprintf("%d.out", s.runs))
	if err := os.WriteFile(script, []byte(commands), 0o600); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(s.in, "first_hour=0; trap 'first_hour=$?' ERR; . %q </dev/null >%q 2>&1 3>&-; trap - ERR; echo $first_hour >&3\n", script, printed); err != nil {
		return "", fmt.Errorf("the shell has ended: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		code, err := s.codes.ReadString('\n')
		if code = strings.TrimSpace(code); err == nil && code != "0" {
			err = fmt.Errorf("a command failed with exit code %s", code)
		}
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	content, readErr := os.ReadFile(printed)
	if err == nil {
		err = readErr
	}
	return string(content), err
}

// end ends the shell and what it left running.
func (s *shell) end() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // fails only if all of it has ended
	_ = s.cmd.Wait()                                      // killed, which is what we wanted
}
