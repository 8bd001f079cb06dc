package v1beta1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DNSNameGrant says which namespaces may have hosts at and below a name of the federation's DNS zone. Once a grant
// names a suffix, no other namespace gets hosts there. Of several suffixes of a host the longest decides; grants of the
// same suffix add up. The own names of Services are not affected.
type DNSNameGrant struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is granted.
	Spec DNSNameGrantSpec `json:"spec"`
}

// DNSNameGrantSpec says what is granted to whom.
type DNSNameGrantSpec struct {
	// The name, as login.example.com, without the last dot: it and all names below it are granted.
	Suffix string `json:"suffix"`
	// The namespaces whose objects may have hosts there; none: nobody's may.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DNSNameGrantList is a list of DNSNameGrants.
type DNSNameGrantList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The grants.
	Items []DNSNameGrant `json:"items"`
}

// DNSNameGranted reports whether objects of a namespace may have a host, and by which suffix that is decided; "": no
// grant names one.
func DNSNameGranted(grants []*DNSNameGrant, namespace, host string) (suffix string, granted bool) {
	granted = true
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	for _, g := range grants {
		if s := g.Spec.Suffix; s == "" || name != s && !strings.HasSuffix(name, "."+s) || len(s) < len(suffix) {
			continue
		} else if len(s) > len(suffix) {
			suffix, granted = s, false
		}
		granted = granted || slices.Contains(g.Spec.Namespaces, namespace)
	}
	return suffix, granted
}
