package propagation

import (
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// handlers are the event handlers of a controller, or of one member, on informers that outlive it.
type handlers struct {
	mu   sync.Mutex
	undo []func() error
}

// listen adds a handler to an informer.
func (h *handlers) listen(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	_, err := h.register(informer, handler)
	return err
}

// register is listen. What it returns is synced once the handler has got all objects that there were.
func (h *handlers) register(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undo = append(h.undo, func() error { return informer.RemoveEventHandler(registration) })
	return registration, nil
}

// unlisten removes all handlers.
func (h *handlers) unlisten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, undo := range h.undo {
		errs = append(errs, undo())
	}
	h.undo = nil
	_ = errors.Join(errs...) // a stopped informer has no handlers to remove
}

// addIndex adds an index to an informer, unless another controller has added it.
func addIndex(informer cache.SharedIndexInformer, name string, of cache.IndexFunc) error {
	if _, there := informer.GetIndexer().GetIndexers()[name]; there {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{name: of})
}
