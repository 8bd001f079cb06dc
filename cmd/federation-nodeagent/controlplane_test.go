package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// controlPlane is that of a member cluster, as `make build` built it: a real kube-apiserver in a process of its own.
type controlPlane struct {
	dir, port  string
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	process    *os.Process
}

var shared *controlPlane // all tests share it: it takes seconds to start

// controlPlaneOf returns the tests' control plane, which runs.
func controlPlaneOf(t *testing.T) *controlPlane {
	t.Helper()
	if shared != nil {
		return shared
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir, err := os.MkdirTemp("", "nodeagent")
	if err != nil {
		t.Fatal(err)
	}
	c := &controlPlane{dir: dir, port: port, kubeconfig: filepath.Join(dir, "kubeconfig")}
	shared = c
	c.start(t)
	return c
}

// start starts it, also again on the same data, and waits until it answers.
func (c *controlPlane) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command("../../_output/bin/member", "--name=m", "--region=ra", "--zone=za", "--nodes=1", "--lb-cidr=203.0.113.0/24",
		"--data-dir="+c.dir, "--port="+c.port)
	if err := cmd.Start(); err != nil {
		t.Fatalf("make build makes it: %v", err)
	}
	c.process = cmd.Process
	eventually(t, "the API server is there", func() (err error) {
		if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
			return err
		}
		c.config.QPS = -1
		if c.kube, err = kubernetes.NewForConfig(c.config); err == nil {
			_, err = c.kube.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		}
		return err
	})
}

// kill ends it at once.
func (c *controlPlane) kill() {
	_ = c.process.Kill()
	_, _ = c.process.Wait()
}
