package agentcert

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// Sign returns a certificate in PEM for a client with the subject of a request, and a UID.
type Sign func(r *x509.CertificateRequest, uid string, lifetime time.Duration) ([]byte, error)

// Controller decides about the requests of agents, and signs them.
type Controller struct {
	kube     kubernetes.Interface
	requests certificatesinformers.CertificateSigningRequestInformer
	cluster  func(ctx context.Context, name string) (*v1beta1.Cluster, error)
	sign     Sign
	queue    workqueue.TypedRateLimitingInterface[string]
}

// New returns a Controller. cluster reads a Cluster, from the API and not from a cache: nil if there is none.
func New(kube kubernetes.Interface, requests certificatesinformers.CertificateSigningRequestInformer, cluster func(context.Context, string) (*v1beta1.Cluster, error), sign Sign) (*Controller, error) {
	c := &Controller{kube: kube, requests: requests, cluster: cluster, sign: sign, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	add := func(obj any) {
		if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok && csr.Spec.SignerName == v1beta1.AgentSigner {
			c.queue.Add(csr.Name)
		}
	}
	_, err := requests.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }})
	return c, err
}

// Run decides and signs until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), c.requests.Informer().HasSynced) {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for c.next(ctx) {
		}
	}, time.Second)
}

func (c *Controller) next(ctx context.Context) bool {
	name, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(name)
	if err := c.sync(ctx, name); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot decide about the request of an agent; will retry", "certificateSigningRequest", name)
		}
		c.queue.AddRateLimited(name)
		return true
	}
	c.queue.Forget(name)
	return true
}

// sync does what is to be done about a request.
func (c *Controller) sync(ctx context.Context, name string) error {
	cached, err := c.requests.Lister().Get(name)
	if err != nil {
		return nil // it has been deleted
	}
	approved, denied := conditionsOf(cached)
	if denied || len(cached.Status.Certificate) > 0 || has(cached, certificatesv1.CertificateFailed) {
		return nil
	}
	csr := cached.DeepCopy()
	r, err := Parse(&csr.Spec)
	switch {
	case err != nil && approved:
		return c.fail(ctx, csr, err.Error())
	case err != nil:
		return c.decide(ctx, csr, Verdict{Action: Deny, Message: err.Error()})
	}
	cluster, err := c.cluster(ctx, r.Cluster)
	if err != nil {
		return err
	}
	if !approved {
		v, err := c.reserveToken(ctx, csr, cluster, Judge(&csr.Spec, r, cluster))
		if err != nil {
			return err
		}
		return c.decide(ctx, csr, v)
	}
	if cluster == nil {
		return c.fail(ctx, csr, fmt.Sprintf("there is no Cluster %q", r.Cluster))
	}
	if err := c.deleteToken(ctx, csr); err != nil {
		return err
	}
	if csr.Status.Certificate, err = c.sign(r.Parsed, string(cluster.UID), r.Lifetime); err != nil {
		return err
	}
	return done(c.kube.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{}))
}

// reserveToken has the token by which something is to be approved serve this request only: it is good for one certificate.
func (c *Controller) reserveToken(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster *v1beta1.Cluster, v Verdict) (Verdict, error) {
	if v.Action != Approve || v.TokenID == "" {
		return v, nil
	}
	secrets := c.kube.CoreV1().Secrets(metav1.NamespaceSystem)
	token, err := secrets.Get(ctx, v1beta1.BootstrapSecretName(v.TokenID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		token = nil
	} else if err != nil {
		return Verdict{}, err
	}
	if why := JudgeToken(token, csr.UID, cluster); why != "" {
		return Verdict{Action: Deny, Message: fmt.Sprintf("the bootstrap token %s %s", v.TokenID, why)}, nil
	}
	metav1.SetMetaDataAnnotation(&token.ObjectMeta, usedBy, string(csr.UID))
	_, err = secrets.Update(ctx, token, metav1.UpdateOptions{}) // refused if another request was faster
	return v, err
}

// deleteToken deletes the token that a request has used.
func (c *Controller) deleteToken(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	id, byToken := strings.CutPrefix(csr.Spec.Username, bootstrapUser)
	if !byToken {
		return nil
	}
	err := c.kube.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, v1beta1.BootstrapSecretName(id), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *Controller) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, v Verdict) error {
	kind := certificatesv1.CertificateApproved
	switch v.Action {
	case Wait:
		return nil
	case Deny:
		kind = certificatesv1.CertificateDenied
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: "ClusterAgent", Message: v.Message, LastUpdateTime: metav1.Now(),
	})
	klog.FromContext(ctx).Info("Decided about the request of an agent", "certificateSigningRequest", csr.Name, "action", v.Action, "message", v.Message)
	return done(c.kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}))
}

// fail says why something that was approved is not signed.
func (c *Controller) fail(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why string) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: why, LastUpdateTime: metav1.Now(),
	})
	return done(c.kube.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{}))
}

// done returns the error of a write that has to be tried again.
func done(_ *certificatesv1.CertificateSigningRequest, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func conditionsOf(csr *certificatesv1.CertificateSigningRequest) (approved, denied bool) {
	return has(csr, certificatesv1.CertificateApproved), has(csr, certificatesv1.CertificateDenied)
}

func has(csr *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == t {
			return true
		}
	}
	return false
}
