package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is one in a layer.
type file struct {
	mode    int64
	content []byte
}

// tarOf writes files, by path, in order and of no time, with the folders that they lie in.
func tarOf(to io.Writer, files map[string]file) error {
	w, made := tar.NewWriter(to), map[string]bool{".": true}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		var above []string
		for dir := path.Dir(at); !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		f := files[at]
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

func layerOf(files map[string]file) (v1.Layer, error) {
	var b bytes.Buffer
	if err := tarOf(&b, files); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// writeArchive writes an index as an OCI archive: a tar of a layout. Container runtimes that import it call it name.
func writeArchive(to string, index v1.ImageIndex, name, tag string) error {
	dir, err := os.MkdirTemp(filepath.Dir(to), ".layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing depends on it
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
	if err := l.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	files := map[string]file{}
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, at)
		files[filepath.ToSlash(below)] = file{0o644, content}
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := tarOf(f, files); err != nil {
		return err
	}
	return f.Close()
}
