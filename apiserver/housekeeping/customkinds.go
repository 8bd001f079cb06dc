package housekeeping

import (
	"context"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/bootstrap"
)

// retryRights is the delay after a failed write of the permissions for custom kinds.
const retryRights = time.Second

// customKinds keeps the role by which the federation's controllers may read and change objects of custom kinds.
func (s *set) customKinds() (func(context.Context), error) {
	informer, err := s.objects.ForResource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default: // a write is pending already
		}
	}
	known := informer.Informer()
	_, err = known.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { note() }, DeleteFunc: func(any) { note() }})
	note() // none may be left
	return func(ctx context.Context) {
		s.objects.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), known.HasSynced) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			names := known.GetStore().ListKeys()
			slices.Sort(names)
			if err := bootstrap.EnsureCustomKinds(ctx, s.kube, names); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Cannot write the permissions for custom kinds; will retry")
				time.AfterFunc(retryRights, note)
			}
		}
	}, err
}
