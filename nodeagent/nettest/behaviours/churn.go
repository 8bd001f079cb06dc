package behaviours

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/nettest"
)

// rounds of changes, each of the Service that is used and of another.
const rounds = 150

// churn connects to a Service all the time, while its endpoints and other Services change and the writer restarts. One
// of its endpoints is always there.
func churn(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.Here, w.There)
	stop, result := make(chan struct{}), make(chan error, 1)
	asked := 0
	go func() { result <- w.ask(stop, &asked) }()
	sets := [][]*nettest.Host{{w.Here}, {w.There}, {w.There, w.Here}, {w.Here, w.There}}
	for i := range rounds {
		w.Endpoints(t, sets[i%len(sets)]...)
		w.unrelated(t, i)
		if i%50 == 49 {
			w.restart(t)
		}
	}
	close(stop)
	if err := <-result; err != nil || asked < 10 {
		t.Errorf("after %d connections: %v", asked, err)
	}
}

// ask asks until it is stopped or fails.
func (w *World) ask(stop chan struct{}, asked *int) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := w.Client.Get(w.Web(w.VIP)); err != nil {
			return err
		}
		*asked++
	}
}

// unrelated changes another Service, which comes and goes.
func (w *World) unrelated(t testing.TB, i int) {
	name := fmt.Sprintf("other-%d", i%7)
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: w.nth(i).String(), ClusterIPs: []string{w.nth(i).String()},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}},
	}
	key := w.Model.SetService(s)
	if i%3 == 2 {
		w.Model.DeleteService(key)
	}
	w.Apply(t, append(w.Model.SetSlice(w.Slice(name, w.There)), key)...)
}
