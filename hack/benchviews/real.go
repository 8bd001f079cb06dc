package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// realMember is a cluster with a real API server and etcd, which runs program member.
type realMember struct {
	client *http.Client
	host   string
	stop   func()
}

// startReal starts a member with pods, which no node runs.
func startReal(program string, pods int) (*realMember, error) {
	dir, err := os.MkdirTemp("", "benchviews")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--data-dir", dir, "--name", "real", "--region", "r", "--zone", "z", "--nodes", "1", "--number", "250", "--port", "17999", "--lb-cidr", "127.99.0.0/24")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &realMember{stop: func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}
	if err := m.fill(filepath.Join(dir, "kubeconfig"), pods); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// fill waits for the member, and creates the pods.
func (m *realMember) fill(kubeconfig string, pods int) error {
	var config *restclient.Config
	var err error
	for range 300 {
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err == nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 10_000, 10_000
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if m.client, err = restclient.HTTPClientFor(config); err != nil {
		return err
	}
	m.host = config.Host
	next, failed := make(chan int), make(chan error, 1)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range next {
				if err := create(kube, i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// create creates a pod, once the member lets it: its namespace's account may not be there yet.
func create(kube kubernetes.Interface, i int) error {
	p := pod(i)
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Labels: p.Labels} // an owner that does not exist has its pods deleted
	p.Spec.SchedulerName, p.Spec.NodeName = "nobody", ""
	p.Spec.Containers[0].VolumeMounts = nil // the member adds it
	var err error
	for range 100 {
		if _, err = kube.CoreV1().Pods(metav1.NamespaceDefault).Create(context.Background(), &p, metav1.CreateOptions{}); err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("pod %s: %w", p.Name, err)
}
