package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programsIn makes a folder with a program of each name.
func programsIn(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(dir, p.name), []byte(p.name+content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var test = release{"v1.2.3", "abc"}

// TestTheSameProgramsGiveTheSameArchive, wherever and whenever they lie, and others another one.
func TestTheSameProgramsGiveTheSameArchive(t *testing.T) {
	archive := func(content string) string {
		builds, err := parseBuilds([]string{"linux/amd64=" + programsIn(t, content), "linux/arm64=" + programsIn(t, "arm")})
		if err != nil {
			t.Fatal(err)
		}
		index, err := test.index(programs[0], builds)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "x.tar")
		if err := writeArchive(file, index, "localhost/federation:v1.2.3", "v1.2.3"); err != nil {
			t.Fatal(err)
		}
		made, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(made)
	}
	if first, second := archive("x"), archive("x"); first != second {
		t.Error("two archives of the same programs differ")
	}
	if archive("x") == archive("y") {
		t.Error("archives of different programs are equal")
	}
}

// noise is what cannot be compressed.
var noise [26e6]byte

// TestWhatAnImageHas: not more bytes than it may have; the program, the authorities of the web where it needs them, the user by number, and nothing else.
func TestWhatAnImageHas(t *testing.T) {
	dir := programsIn(t, "")
	for _, p := range programs {
		image, err := test.image(p, build{v1.Platform{OS: "linux", Architecture: "arm64"}, dir})
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		root := p.name == "federation-nodeagent"
		if c := config.Config; config.Architecture != "arm64" || (c.User == "0:0") != root || (c.User == "65532:65532") == root || !slices.Equal(c.Entrypoint, []string{"/" + p.name}) || c.Labels["org.opencontainers.image.revision"] != "abc" {
			t.Errorf("%s: %s %+v", p.name, config.Architecture, c)
		}
		want := []string{p.name}
		if p.web {
			want = []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", p.name}
		}
		if names := namesIn(t, image); !slices.Equal(names, want) {
			t.Errorf("%s has %v, want %v", p.name, names, want)
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(authorities()) || strings.Count(string(authorities()), "BEGIN CERTIFICATE") < 50 {
		t.Error("there are too few authorities of the web")
	}
	if _, err := rand.NewChaCha8([32]byte{}).Read(noise[:]); err != nil {
		t.Fatal(err)
	}
	large := build{v1.Platform{OS: "linux", Architecture: "arm64"}, programsIn(t, string(noise[:]))}
	if _, err := test.image(programs[0], large); err != nil {
		t.Errorf("%s of 26 MB: %v", programs[0].name, err)
	}
	if _, err := test.image(programs[1], large); err == nil || !strings.Contains(err.Error(), "must have at most 25") {
		t.Errorf("%s of 26 MB: %v", programs[1].name, err)
	}
	if _, err := test.image(programs[0], build{dir: t.TempDir()}); err == nil {
		t.Error("an image without its program is made")
	}
}

func namesIn(t *testing.T, image v1.Image) (names []string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 || h.Uid != 0 {
			t.Errorf("%s is of %v and user %d", h.Name, h.ModTime, h.Uid)
		}
		names = append(names, h.Name)
	}
}

// TestALayoutThatRuntimesKnow: the archive has a layout's files, and the name by which a runtime imports it.
func TestALayoutThatRuntimesKnow(t *testing.T) {
	builds, _ := parseBuilds([]string{"linux/amd64=" + programsIn(t, "")})
	index, err := test.index(programs[1], builds)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := writeArchive(file, index, "localhost/federation-dns:v1.2.3", "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		found[h.Name], _ = io.ReadAll(r)
	}
	var top v1.IndexManifest
	if err := json.Unmarshal(found["index.json"], &top); err != nil || found["oci-layout"] == nil {
		t.Fatal(err, len(found))
	}
	digest, _ := index.Digest()
	if len(top.Manifests) != 1 || top.Manifests[0].Digest != digest || top.Manifests[0].Annotations["io.containerd.image.name"] != "localhost/federation-dns:v1.2.3" || found["blobs/sha256/"+digest.Hex] == nil {
		t.Errorf("index.json: %s", found["index.json"])
	}
}

func TestPlatforms(t *testing.T) {
	for _, wrong := range []string{"", "linux", "linux/amd64", "linux/=x", "linux=x", "linux/amd64="} {
		if _, err := parseBuilds([]string{wrong}); err == nil {
			t.Errorf("%q is taken for a platform", wrong)
		}
	}
}
