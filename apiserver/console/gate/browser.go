package gate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// OpenBrowser has the browser open an address. It goes by a file that only its user can read: the arguments of a process can
// be seen by everybody on the machine. remove removes it.
func OpenBrowser(ctx context.Context, address string) (remove func(), err error) {
	remove = func() {}
	var words []string
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open"}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return remove, errors.New("there is no display")
		}
		words = []string{"xdg-open"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return remove, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return remove, err
	}
	dir, err := os.MkdirTemp(cache, "kubectl-federation-console-")
	if err != nil {
		return remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // what stays is of no use once this process has ended
	page := filepath.Join(dir, "open.html")
	if err := os.WriteFile(page, []byte(`<!doctype html><meta http-equiv="refresh" content="0;url=`+address+`">`), 0o600); err != nil {
		return remove, err
	}
	return remove, exec.CommandContext(ctx, words[0], append(words[1:], page)...).Start()
}
