package main

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// ingressClassName is the class whose Ingresses get addresses. It is the default class.
const ingressClassName = "local"

func ensureIngressClass(ctx context.Context, kube kubernetes.Interface) error {
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        ingressClassName,
			Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
		},
		Spec: networkingv1.IngressClassSpec{Controller: "federation.local/ingress"},
	}
	_, err := kube.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// ingressController gives the Ingresses of one class their load balancer address.
type ingressController struct {
	kube   kubernetes.Interface
	lister networkinglisters.IngressLister
	synced cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	cloud  *cloud
}

func newIngressController(kube kubernetes.Interface, informer networkinginformers.IngressInformer, cloud *cloud) (*ingressController, error) {
	c := &ingressController{
		kube:   kube,
		lister: informer.Lister(),
		synced: informer.Informer().HasSynced,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		cloud:  cloud,
	}
	enqueue := func(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(*networkingv1.Ingress))) }
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			cloud.release(ingressOwner(obj.(*networkingv1.Ingress)))
		},
	})
	return c, err
}

func (c *ingressController) run(ctx context.Context) {
	defer utilruntime.HandleCrash()
	context.AfterFunc(ctx, c.queue.ShutDown)
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, key); err != nil {
			utilruntime.HandleError(fmt.Errorf("ingress %s: %w", key, err))
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// sync writes the address into the Ingress's status, or takes it out when the class is another's.
func (c *ingressController) sync(ctx context.Context, key cache.ObjectName) error {
	ingress, err := c.lister.Ingresses(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var want []networkingv1.IngressLoadBalancerIngress
	if class := ingress.Spec.IngressClassName; class != nil && *class == ingressClassName {
		a, err := c.cloud.allocate(ingressOwner(ingress))
		if err != nil {
			return err
		}
		want = []networkingv1.IngressLoadBalancerIngress{{IP: a.String()}}
	} else if !c.cloud.holds(ingressOwner(ingress)) {
		return nil // never ours: whoever serves the class writes its status
	}
	if !equality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, want) {
		ingress = ingress.DeepCopy()
		ingress.Status.LoadBalancer.Ingress = want
		if _, err := c.kube.NetworkingV1().Ingresses(key.Namespace).UpdateStatus(ctx, ingress, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if want == nil {
		c.cloud.release(ingressOwner(ingress))
	}
	return nil
}
