package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCollect: what is collected says how all is, and nothing that somebody keeps in objects is in it.
func TestCollect(t *testing.T) {
	home(t)
	const kept = "hunter2"
	made := metav1.ObjectMeta{Name: "collected", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: kept}}
	if _, err := s.fed.client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: made, StringData: map[string]string{"password": kept}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fed.client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: made, Data: map[string]string{"password": kept}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	web := replicaSet("collected", 1, made.Annotations)
	web.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: kept}}
	if _, err := s.fed.client.AppsV1().ReplicaSets(ns).Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return errors.Join(s.fed.client.AppsV1().ReplicaSets(ns).Delete(ctx, "collected", background), s.fed.client.CoreV1().ConfigMaps(ns).Delete(ctx, "collected", background), s.fed.client.CoreV1().Secrets(ns).Delete(ctx, "collected", background))
	})
	eventually(t, time.Minute, func() string {
		is, err := s.fed.client.AppsV1().ReplicaSets(ns).Get(t.Context(), "collected", metav1.GetOptions{})
		if err != nil || is.Status.ReadyReplicas != 1 {
			return "not ready"
		}
		return ""
	})
	file := filepath.Join(t.TempDir(), "support.tar.gz")
	if out, err := s.plugin(t, "collect", "--file", file); err != nil || !strings.Contains(out, "wrote "+file) {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := s.plugin(t, "collect", "--file", file); err == nil || !strings.Contains(out, "--file: open "+file+": file exists") {
		t.Errorf("a file that is there: %v: %s", err, out)
	}
	all := unpacked(t, file)
	for name, want := range map[string]string{
		"version.json": `"gitVersion"`, "status.json": `"east-a"`, "readyz.txt": "check passed", "metrics.txt": "federation_", "federation/clusters.json": `"ClusterReady"`,
		"objects/secrets.json": `"collected"`, "objects/configmaps.json": `"collected"`, "objects/replicasets.apps.json": `"readyReplicas": 1`, "leases.json": `"List"`, "events.json": `"List"`,
	} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s has no %s: %.300s", name, want, all[name])
		}
	}
	for name, text := range all {
		if strings.Contains(text, kept) || strings.Contains(text, "aHVudGVyMg") { // or in base64
			t.Errorf("%s has what is kept in an object", name)
		}
	}
	if text := all["errors.txt"]; text != "" {
		t.Errorf("errors of an administrator:\n%s", text)
	}
	if out, err := s.plugin(t, "collect", "--file", file+"2", "--as", "nobody"); err == nil {
		if all := unpacked(t, file+"2"); !strings.Contains(all["errors.txt"], "objects/secrets.json") || all["objects/secrets.json"] != "" {
			t.Errorf("as somebody without rights: %v", all["errors.txt"])
		}
	} else {
		t.Errorf("as somebody without rights: %v: %s", err, out)
	}
}

// unpacked returns the files of an archive, by their names below its folder.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it is read
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(h.Name, "federation-support/")] = string(content)
	}
}
