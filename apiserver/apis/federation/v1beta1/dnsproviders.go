package v1beta1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSProvider is the state of a DNS provider, by DNSProvidersConfigMap.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type DNSProvider struct {
	Name string `json:"name"`
	// Published: it has all records, except those that the message names.
	Published bool   `json:"published"`
	Reason    string `json:"reason"`
	// Message is the last error, if it is not published.
	Message string `json:"message"`
	// Since is when it became published, or got behind.
	Since metav1.Time `json:"since"`
}

// ReadDNSProviders returns the DNS providers in the data of DNSProvidersConfigMap, by name. The error names the key whose value is no
// condition.
func ReadDNSProviders(data map[string]string) (all []DNSProvider, err error) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		var is metav1.Condition
		if err := json.Unmarshal([]byte(data[name]), &is); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", FederationNamespace, DNSProvidersConfigMap, name, err)
		}
		all = append(all, DNSProvider{Name: name, Published: is.Status == metav1.ConditionTrue, Reason: is.Reason, Message: is.Message, Since: is.LastTransitionTime})
	}
	return all, nil
}
