// Command image makes images without a registry or a daemon: of one static program, and of files that lie on this
// machine.
//
//	image --out DIR/web.tar --tag local/web:1 --entrypoint /pod,web /pod=_output/bin/pod
//
// Arguments are PATH=FILE: the file FILE as PATH in the image; a FILE that is a symbolic link is what it points to.
// --libraries adds the shared libraries that the files need, as ldd tells.
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/pflag"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "image: error: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	out := pflag.String("out", "", "`FILE` to write")
	tags := pflag.StringSlice("tag", nil, "`NAME:TAG` of the image; may be given more than once")
	entrypoint := pflag.StringSlice("entrypoint", nil, "program that it runs, with its arguments")
	args := pflag.StringSlice("args", nil, "arguments behind those, which a pod may replace")
	libraries := pflag.Bool("libraries", false, "with the shared libraries that the files need")
	pflag.Parse()
	files := map[string]string{}
	for _, arg := range pflag.Args() {
		at, file, ok := strings.Cut(arg, "=")
		if !ok || !path.IsAbs(at) {
			return fmt.Errorf("%q: want /PATH=FILE", arg)
		}
		files[at] = file
	}
	if *libraries {
		addLibraries(files)
	}
	layer, err := layerOf(files)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{Entrypoint: *entrypoint, Cmd: *args, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin:/"}}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return err
	}
	return write(*out, image, *tags)
}

// addLibraries adds what ldd lists for each file, which is nothing for a static program.
func addLibraries(files map[string]string) {
	library := regexp.MustCompile(`(/\S+) \(0x`)
	for _, program := range slices.Collect(maps.Values(files)) { // files grows
		out, _ := exec.Command("ldd", program).Output() // fails for what is no dynamic program
		for _, found := range library.FindAllStringSubmatch(string(out), -1) {
			files[found[1]] = found[1]
		}
	}
}

// layerOf makes a layer of the files, in order, with the directories that they lie in.
func layerOf(files map[string]string) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{"/": true}
	for _, dir := range []string{"/tmp", "/uploads"} { // agnhost's server keeps what it gets in the second
		made[dir] = true
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o1777}); err != nil {
			return nil, err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		if err := addDirectories(w, path.Dir(at), made); err != nil {
			return nil, err
		}
		if err := addFile(w, at, files[at]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}

// addDirectories adds a directory, and those that it lies in, unless they are made.
func addDirectories(w *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := addDirectories(w, path.Dir(dir), made); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755})
}

func addFile(w *tar.Writer, at, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: at[1:], Mode: int64(info.Mode().Perm() | 0o444), Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

// write writes the image to a file, under all its tags.
func write(out string, image v1.Image, tags []string) error {
	images := map[name.Reference]v1.Image{}
	for _, tag := range tags {
		reference, err := name.NewTag(tag)
		if err != nil {
			return fmt.Errorf("--tag %q: %w", tag, err)
		}
		images[reference] = image
	}
	f, err := os.Create(out + ".new")
	if err != nil {
		return err
	}
	if err := tarball.MultiRefWrite(images, f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}
