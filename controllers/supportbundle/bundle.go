// Package supportbundle collects in one archive what somebody needs who looks for a fault in a federation, with a user's own rights, and leaves
// out what may be secret.
package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"federation/apiserver/client"
)

// Write writes a bundle: a compressed archive of files. It says each file before it reads what is in it.
func Write(ctx context.Context, f *client.Federation, out io.Writer, now time.Time, say func(file string)) error {
	b := newBundle(out, now)
	for _, p := range parts(f) {
		say(p.file)
		if err := b.add(ctx, p); err != nil {
			return err
		}
	}
	return b.close()
}

// part is a file of a bundle.
type part struct {
	file string
	read func(context.Context) ([]byte, error)
}

// bundle is a compressed archive of files, all of the same time.
type bundle struct {
	zip    *gzip.Writer
	tar    *tar.Writer
	now    time.Time
	failed bytes.Buffer
}

func newBundle(out io.Writer, now time.Time) *bundle {
	zip := gzip.NewWriter(out)
	return &bundle{zip: zip, tar: tar.NewWriter(zip), now: now}
}

// add reads a file and writes it. What cannot be read is noted, and no error.
func (b *bundle) add(ctx context.Context, p part) error {
	content, err := p.read(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if apierrors.IsNotFound(err) { // a kind that this federation does not serve
		return nil
	}
	if err != nil {
		fmt.Fprintf(&b.failed, "%s: %v\n", p.file, err)
		return nil
	}
	return b.write(p.file, content)
}

func (b *bundle) write(file string, content []byte) error {
	if err := b.tar.WriteHeader(&tar.Header{Name: "federation-support/" + file, Mode: 0o600, Size: int64(len(content)), ModTime: b.now}); err != nil {
		return err
	}
	_, err := b.tar.Write(content)
	return err
}

// close adds errors.txt if there were any, and ends the archive.
func (b *bundle) close() error {
	var err error
	if b.failed.Len() > 0 {
		err = b.write("errors.txt", b.failed.Bytes())
	}
	return errors.Join(err, b.tar.Close(), b.zip.Close())
}
