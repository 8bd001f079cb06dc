package views

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"federation/apiserver/apis/federation/v1beta1"
)

// selected is a request's selection: by labels, of which v1beta1.ClusterLabel is ours, and by fields, of which some
// contain names of ours.
type selected struct {
	labels   labels.Requirements
	fields   fields.Requirements
	nothing  bool
	clusters map[string]bool
}

// named are the fields whose values are NAME.CLUSTER here, and NAME in the member.
var named = map[string]bool{"metadata.name": true, "spec.nodeName": true}

func selectedBy(o *metainternalversion.ListOptions, clusters []*v1beta1.Cluster) (selected, error) {
	s := selected{clusters: namesOf(clusters)}
	if o.LabelSelector != nil {
		requirements, selectable := o.LabelSelector.Requirements()
		s.labels, s.nothing = requirements, !selectable
	}
	if o.FieldSelector != nil {
		s.fields = o.FieldSelector.Requirements()
	}
	for _, r := range s.fields {
		if named[r.Field] && r.Operator != selection.Equals && r.Operator != selection.DoubleEquals && r.Operator != selection.NotEquals {
			return s, errors.NewBadRequest(fmt.Sprintf("field selector %s %s: must be =, == or !=", r.Field, r.Operator))
		}
	}
	return s, nil
}

// selection returns a request's selection, in the words of members.
func (r *REST) selection(ctx context.Context, o *metainternalversion.ListOptions, clusters []*v1beta1.Cluster) (selected, error) {
	s, err := selectedBy(o, clusters)
	if r.kind == &pods {
		s.labels = r.owners.inMembers(ctx, r.namespace(ctx), s.labels)
	}
	return s, err
}

// selectorsFor returns the selectors for one cluster, "" for all; false: nothing there is selected.
func (s selected) selectorsFor(cluster string) (label, field string, any bool) {
	if s.nothing {
		return "", "", false
	}
	var byLabel labels.Requirements
	for _, r := range s.labels {
		if r.Key() != v1beta1.ClusterLabel {
			byLabel = append(byLabel, r)
		} else if !r.Matches(labels.Set{v1beta1.ClusterLabel: cluster}) {
			return "", "", false
		}
	}
	var byField []fields.Selector
	for _, r := range s.fields {
		value := r.Value
		if named[r.Field] && value != "" {
			bare, of := splitName(value, s.clusters)
			differs, elsewhere := r.Operator == selection.NotEquals, of != "" && of != cluster
			switch {
			case elsewhere && differs:
				continue
			case elsewhere:
				return "", "", false
			}
			value = bare
		}
		if r.Operator == selection.NotEquals {
			byField = append(byField, fields.OneTermNotEqualSelector(r.Field, value))
		} else {
			byField = append(byField, fields.OneTermEqualSelector(r.Field, value))
		}
	}
	return labels.NewSelector().Add(byLabel...).String(), fields.AndSelectors(byField...).String(), true
}
