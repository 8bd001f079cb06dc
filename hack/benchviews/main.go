// Command benchviews measures what a list of all members' pods costs at the federation, beside what it costs at each member.
//
//	go run ./hack/benchviews -pods 10000 -members 3
//
// The members are fakes behind TLS, in this process; as a real API server does, they encode their pods again for each request. The federation is a whole
// apiserver with etcd. All of it shares the machine's processors: "members at once" is what the members take when each is asked by a client of its own at the same
// time, which is the least that a federation on the same machine has to wait for. "Elsewhere" is with members that are on machines of their own: what they send has
// been encoded before, and comes as slowly as one that is asked alone sends it. With -real the one that is asked alone is a real API server with as many pods.
package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

func main() {
	pods, members, runs := flag.Int("pods", 10000, "pods of each member"), flag.Int("members", 3, "members"), flag.Int("runs", 7, "of each measurement")
	real := flag.String("real", "", "program member, to take the pace of members elsewhere from a real API server: _output/bin/member")
	flag.Parse()
	if err := run(*pods, *members, *runs, *real); err != nil {
		fmt.Fprintln(os.Stderr, "benchviews:", err)
		os.Exit(1)
	}
}

func run(pods, members, runs int, program string) error {
	f, err := start()
	if err != nil {
		return err
	}
	defer f.stop()
	var real *realMember
	if program != "" {
		if real, err = startReal(program, pods); err != nil {
			return err
		}
		defer real.stop()
	}
	var all []*httptest.Server
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}} //nolint:gosec // fakes of this process
	for i := range members {
		server, err := f.join(fmt.Sprintf("m%d", i), pods)
		if err != nil {
			return err
		}
		defer server.Close()
		all = append(all, server)
	}
	client, err := restclient.HTTPClientFor(f.admin)
	if err != nil {
		return err
	}
	fmt.Printf("%d members of %d pods, %d runs: median (least, most), median of processor time; %d processors\n", members, pods, runs, runtime.NumCPU())
	accepts := []string{"application/vnd.kubernetes.protobuf", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"}
	f.pace.Store(1) // what members keep for later is there before the heap is measured
	for _, accept := range accepts {
		if err := get(client, f.admin.Host, accept); err != nil {
			return err
		}
	}
	f.pace.Store(0)
	before := heap()
	for _, accept := range accepts {
		if strings.Contains(accept, "Table") {
			fmt.Printf("%s\n%-30s %s\n", accept, "federation", measure(runs, func() error { return get(client, f.admin.Host, accept) }))
			continue
		}
		fmt.Println(accept)
		alone := measure(runs, func() error { return get(insecure, all[0].URL, accept) })
		fmt.Printf("%-30s %s\n", "a member alone", alone)
		together := measure(runs, func() error { return atOnce(insecure, all, accept) })
		fmt.Printf("%-30s %s\n", "members at once", together)
		federated := measure(runs, func() error { return get(client, f.admin.Host, accept) })
		fmt.Printf("%-30s %s: %.2f times the members at once\n", "federation", federated, float64(federated.median())/float64(together.median()))
		if real != nil {
			alone = measure(runs, func() error { return get(real.client, real.host, accept) })
			fmt.Printf("%-30s %s of this process\n", "a real member alone", alone)
		}
		f.pace.Store(int64(alone.median()))
		elsewhere := measure(runs, func() error { return get(client, f.admin.Host, accept) })
		f.pace.Store(0)
		fmt.Printf("%-30s %s: %.2f times the last that was alone\n", "federation, members elsewhere", elsewhere, float64(elsewhere.median())/float64(alone.median()))
	}
	fmt.Printf("heap before %d MB, after %d MB\n", before>>20, heap()>>20)
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func get(client *http.Client, host, accept string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, host+"/api/v1/pods", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	n, err := io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK || len(response.Header["Warning"]) > 0 {
		return fmt.Errorf("%s: %s after %d bytes, warnings %v", request.URL, response.Status, n, response.Header["Warning"])
	}
	return err
}

func atOnce(client *http.Client, members []*httptest.Server, accept string) error {
	errs := make(chan error, len(members))
	var group sync.WaitGroup
	for _, m := range members {
		group.Go(func() { errs <- get(client, m.URL, accept) })
	}
	group.Wait()
	for range members {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// measured is how long something took each time, in order, and how much of the processors.
type measured struct{ times, processors []time.Duration }

func measure(runs int, what func() error) (m measured) {
	for i := range runs + 1 {
		begin, used := time.Now(), processorTime()
		if err := what(); err != nil {
			fmt.Fprintln(os.Stderr, "benchviews:", err)
			os.Exit(1)
		}
		if i > 0 { // the first makes connections
			m.times, m.processors = append(m.times, time.Since(begin)), append(m.processors, processorTime()-used)
		}
	}
	slices.Sort(m.times)
	slices.Sort(m.processors)
	return m
}

// processorTime returns what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m measured) median() time.Duration { return m.times[len(m.times)/2] }

func (m measured) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%v (%v, %v), %v", ms(m.median()), ms(m.times[0]), ms(m.times[len(m.times)-1]), ms(m.processors[len(m.processors)/2]))
}

// federation is an apiserver of its own.
type federation struct {
	admin *restclient.Config
	kube  kubernetes.Interface
	uid   types.UID
	stop  func()
	pace  atomic.Int64 // how long members take for a list that has been encoded before, in nanoseconds; 0: they encode it

	mu       sync.Mutex
	clusters []*v1beta1.Cluster
}

func start() (*federation, error) {
	dir, err := os.MkdirTemp("", "benchviews")
	if err != nil {
		return nil, err
	}
	f := &federation{}
	o := apiserver.NewOptions()
	o.DataDir, o.SecurePort, o.Clusters = dir, 0, f.known
	config, err := o.Complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server, err := config.New(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func() { close(ready) }) }()
	f.stop = func() { cancel(); <-ended; _ = os.RemoveAll(dir) }
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, err
	}
	if f.admin, err = clientcmd.BuildConfigFromFlags("", server.KubeconfigPath()); err != nil {
		return nil, err
	}
	if f.kube, err = kubernetes.NewForConfig(f.admin); err != nil {
		return nil, err
	}
	ns, err := f.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	f.uid = ns.UID
	return f, nil
}

func (f *federation) known() []*v1beta1.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clusters
}

// join adds a fake member with pods in namespace default.
func (f *federation) join(name string, pods int) (*httptest.Server, error) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range pods {
		list.Items = append(list.Items, pod(i))
	}
	namespaces := &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault, Labels: map[string]string{v1beta1.AcceptLabel: string(f.uid)}}}}}
	server := httptest.NewUnstartedServer(&member{pace: &f.pace, namespaces: namespaces, pods: list, encoded: map[string][]byte{}})
	server.EnableHTTP2 = true
	server.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{credential.TokenKey: []byte("t"), credential.CAKey: ca}}
	if _, err := f.kube.CoreV1().Secrets(v1beta1.FederationNamespace).Create(context.Background(), secret, metav1.CreateOptions{}); err != nil {
		return server, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = append(f.clusters, &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: v1beta1.ClusterSpec{
			ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: strings.TrimPrefix(server.URL, "https://")}},
			SecretRef:                  &corev1.LocalObjectReference{Name: name},
		},
	})
	return server, nil
}

// member is the API of one.
type member struct {
	pace       *atomic.Int64
	namespaces *corev1.NamespaceList
	pods       *corev1.PodList

	mu      sync.Mutex
	encoded map[string][]byte // the pods, by media type
}

func (m *member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mediaType, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	info, ok := kruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	pace := time.Duration(m.pace.Load())
	switch {
	case r.URL.Path == "/api/v1/namespaces":
		_ = encoder.Encode(m.namespaces, w)
	case pace == 0:
		_ = encoder.Encode(m.pods, w)
	default:
		send(w, m.encodedAs(mediaType, encoder), pace)
	}
}

// encodedAs returns the pods, encoded once.
func (m *member) encodedAs(mediaType string, encoder kruntime.Encoder) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.encoded[mediaType] == nil {
		m.encoded[mediaType], _ = kruntime.Encode(encoder, m.pods)
	}
	return m.encoded[mediaType]
}

// send sends data in parts, so that it takes as long as the pace says.
func send(w io.Writer, data []byte, pace time.Duration) {
	const parts = 50
	begin := time.Now()
	for i := range parts {
		time.Sleep(time.Until(begin.Add(pace * time.Duration(i+1) / parts)))
		_, _ = w.Write(data[len(data)*i/parts : len(data)*(i+1)/parts])
	}
}

// pod is one as a Deployment of three containers' worth of settings makes them.
func pod(i int) corev1.Pod {
	yes := true
	container := corev1.Container{
		Name: "web", Image: "registry.example/team/web:v1.2.3", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:          []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}},
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
	}
	now := metav1.NewTime(time.Unix(1700000000, 0))
	conditions := []corev1.PodCondition{}
	for _, c := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		conditions = append(conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("web-7d4b9c6f5-%05d", i), UID: types.UID(fmt.Sprintf("5f0c2a64-0000-4000-8000-%012d", i)), ResourceVersion: "1", CreationTimestamp: now,
			Labels:          map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5", UID: "u", Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%100), Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, ServiceAccountName: "default"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.128.0.1", PodIPs: []corev1.PodIP{{IP: "10.128.0.1"}}, StartTime: &now, Conditions: conditions,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, Image: container.Image, ImageID: "sha256:5f0c2a64", ContainerID: "containerd://5f0c2a64", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
		},
	}
}
