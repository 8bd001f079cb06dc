package v1beta1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LeaderLease is the name of the Lease in FederationNamespace of the one process that decides: it places, fails over, and says how Clusters are.
const LeaderLease = "federation-controllers"

// FailedComponent is a part of a process of the federation that has failed.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type FailedComponent struct {
	// Host is the machine of the process.
	Host      string `json:"host"`
	Component string `json:"component"`
	Restarts  int    `json:"restarts"`
	// Running: it has been restarted.
	Running bool        `json:"running"`
	Since   metav1.Time `json:"since"`
	Message string      `json:"message"`
}

// ReadComponents reads the data of the ConfigMap ComponentsConfigMap, by host and name.
func ReadComponents(data map[string]string) (all []FailedComponent, err error) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var c FailedComponent
		if err := json.Unmarshal([]byte(data[key]), &c); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", FederationNamespace, ComponentsConfigMap, key, err)
		}
		c.Host, _, _ = strings.Cut(key, ".")
		all = append(all, c)
	}
	return all, nil
}
