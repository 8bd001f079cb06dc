// Command images makes the images of a release without a registry or a daemon: for each program one OCI archive with an image for each
// platform, of the program and nothing else but the authorities of the web where it needs them. The same programs give the same digests.
//
//	images --out DIR --version v0.1.0 --revision COMMIT linux/amd64=DIR linux/arm64=DIR
//
// It prints the name and digest of each. A DIR has the programs, by name.
package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spf13/pflag"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// program is one that there is an image of.
type program struct {
	name string
	user string // numbers, so that a kubelet sees that it is not root
	web  bool   // it calls services of the web: identity providers, clouds
	most int64  // bytes that an image of it may have, compressed
}

const nobody = "65532:65532"

// programs are all of them. The node agent has the capability NET_ADMIN, which only root gets.
var programs = []program{
	{"federation", nobody, true, 45e6}, {"federation-agent", nobody, true, 25e6}, {"federation-dns", nobody, true, 25e6}, {"federation-lb", nobody, true, 25e6}, {"federation-nodeagent", "0:0", false, 25e6},
}

// release is what all images of one have in common.
type release struct{ version, revision string }

// build is a folder with the programs for a platform.
type build struct {
	platform v1.Platform
	dir      string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "images: error: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	var r release
	out := pflag.String("out", "", "`FOLDER` for the archives, NAME-VERSION.oci.tar")
	registry := pflag.String("registry", "localhost", "`REGISTRY` in the name under which a container runtime imports them")
	pflag.StringVar(&r.version, "version", "", "of the release: the tag")
	pflag.StringVar(&r.revision, "revision", "", "`COMMIT` that it is of")
	pflag.Parse()
	if *out == "" || r.version == "" || pflag.NArg() == 0 {
		return fmt.Errorf("--out, --version and a platform are required")
	}
	builds, err := parseBuilds(pflag.Args())
	if err != nil {
		return err
	}
	for _, p := range programs {
		index, err := r.index(p, builds)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		file := filepath.Join(*out, p.name+"-"+r.version+".oci.tar")
		if err := writeArchive(file, index, *registry+"/"+p.name+":"+r.version, r.version); err != nil {
			return err
		}
		fmt.Println(p.name, digest)
	}
	return nil
}

func parseBuilds(args []string) (all []build, err error) {
	for _, arg := range args {
		platform, dir, ok := strings.Cut(arg, "=")
		system, architecture, both := strings.Cut(platform, "/")
		if !ok || !both || system == "" || architecture == "" || dir == "" {
			return nil, fmt.Errorf("%q: want PLATFORM=DIR, as linux/amd64=programs", arg)
		}
		all = append(all, build{v1.Platform{OS: system, Architecture: architecture}, dir})
	}
	return all, nil
}

// index is a program's image for all platforms.
func (r release) index(p program, builds []build) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range builds {
		image, err := r.image(p, b)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &b.platform}})
	}
	return index, nil
}

// image is a program's for one platform.
func (r release) image(p program, b build) (v1.Image, error) {
	content, err := os.ReadFile(filepath.Join(b.dir, p.name))
	if err != nil {
		return nil, err
	}
	files := map[string]file{p.name: {0o755, content}}
	if p.web {
		files["etc/ssl/certs/ca-certificates.crt"] = file{0o644, authorities()}
	}
	layer, err := layerOf(files)
	if err != nil {
		return nil, err
	}
	size, err := layer.Size()
	if err != nil {
		return nil, err
	}
	if size > p.most {
		return nil, fmt.Errorf("the image for %s has %.1f MB, compressed: must have at most %.0f", b.platform, float64(size)/1e6, float64(p.most)/1e6)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	labels := map[string]string{
		"org.opencontainers.image.title": p.name, "org.opencontainers.image.version": r.version,
		"org.opencontainers.image.revision": r.revision, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = b.platform.OS, b.platform.Architecture
	config.Config = v1.Config{Entrypoint: []string{"/" + p.name}, User: p.user, Labels: labels}
	return mutate.ConfigFile(image, config)
}

// authorities are those of the web, as Mozilla lists them and go.sum pins them, without those that are trusted under a condition, which a PEM file
// cannot have.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}
