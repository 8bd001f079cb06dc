package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Operations of a JSON patch.
const (
	opAdd, opRemove, opReplace = "add", "remove", "replace"
	opMove, opCopy, opTest     = "move", "copy", "test"
)

var patchOperations = []string{opAdd, opCopy, opMove, opRemove, opReplace, opTest}

func validateOverrides(overrides []v1beta1.Override, path *field.Path) (errs field.ErrorList) {
	all := 0
	if len(overrides) > maxOverrides {
		errs = append(errs, field.TooMany(path, len(overrides), maxOverrides))
	}
	for i, o := range overrides {
		at := path.Index(i)
		errs = append(errs, validateAffinity(o.Clusters, at.Child("clusters"))...)
		operations := at.Child("jsonPatch")
		if len(o.JSONPatch) == 0 {
			errs = append(errs, field.Required(operations, "at least one operation"))
		}
		if len(o.JSONPatch) > maxOverrides {
			errs = append(errs, field.TooMany(operations, len(o.JSONPatch), maxOverrides))
		}
		for j, op := range o.JSONPatch {
			errs = append(errs, validateOperation(op, operations.Index(j))...)
		}
		all += len(o.JSONPatch)
	}
	if all > maxOperations {
		errs = append(errs, field.Invalid(path, all, fmt.Sprintf("must have at most %d operations in all", maxOperations)))
	}
	return errs
}

// fixedStays refuses operations on fields of the selected kinds that are not the policy's.
func fixedStays(s *v1beta1.PlacementPolicySpec, path *field.Path) (errs field.ErrorList) {
	fixed := fixedFields(s.ResourceSelectors)
	check := func(pointer string, changes bool, at *field.Path) {
		if why := fixed[pointer]; why != "" && changes {
			errs = append(errs, field.Invalid(at, pointer, "may not be changed: "+why))
		}
	}
	for i, o := range s.Overrides {
		for j, op := range o.JSONPatch {
			at := path.Index(i).Child("jsonPatch").Index(j)
			check(op.Path, op.Op != opTest, at.Child("path"))
			check(op.From, op.Op == opMove, at.Child("from"))
		}
	}
	return errs
}

// fixedFields returns JSON pointers to what overrides may not change in the selected kinds, with the reason: the
// placement sets the number of replicas of a divided kind, and the type of a Secret decides whether it is federated.
func fixedFields(selectors []v1beta1.ResourceSelector) map[string]string {
	fields := map[string]string{}
	for _, k := range v1beta1.FederatedKinds {
		selected := slices.ContainsFunc(selectors, func(s v1beta1.ResourceSelector) bool {
			return s.Kind == k.Kind && s.APIVersion == k.Resource.GroupVersion().String()
		})
		share := "which share of the replicas of a " + k.Kind + " a cluster gets is said by replicaPreferences"
		switch {
		case !selected:
		case k.Kind == "Secret":
			fields["/type"] = "it says what kind of Secret it is"
		case k.Preferences == "":
		case k.Kind == "Job":
			fields["/spec/parallelism"] = share
		default:
			fields["/spec/replicas"] = share
		}
	}
	return fields
}

func validateOperation(o v1beta1.JSONPatchOperation, at *field.Path) field.ErrorList {
	errs := oneOf(o.Op, patchOperations, at.Child("op"))
	errs = append(errs, validatePointer(o.Path, o.Op != opTest, at.Child("path"))...)
	from, value := at.Child("from"), at.Child("value")
	switch o.Op {
	case opMove, opCopy:
		errs = append(errs, validatePointer(o.From, o.Op == opMove, from)...)
		if o.From != "" && strings.HasPrefix(o.Path, o.From+"/") {
			errs = append(errs, field.Invalid(at.Child("path"), o.Path, "must not be below from: nothing can be moved or copied into itself"))
		}
	case opAdd, opReplace, opTest:
		if o.Value == nil {
			errs = append(errs, field.Required(value, "needed for add, replace and test; to take a field away, use remove"))
		}
	}
	if o.From != "" && o.Op != opMove && o.Op != opCopy {
		errs = append(errs, field.Invalid(from, o.From, "goes with move and copy only"))
	}
	if o.Value != nil && o.Op != opAdd && o.Op != opReplace && o.Op != opTest {
		errs = append(errs, field.Invalid(value, string(o.Value.Raw), "goes with add, replace and test only"))
	}
	return errs
}

// pointer is a JSON pointer (RFC 6901) to a part of a document.
var pointer = regexp.MustCompile(`^(/([^~/]|~[01])*)+$`)

// validatePointer checks a JSON pointer and, if it is the target of a change, that the change is allowed.
func validatePointer(p string, changes bool, path *field.Path) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(path, "a JSON pointer, such as /spec/template/spec/containers/0/image")}
	case !pointer.MatchString(p):
		return field.ErrorList{field.Invalid(path, p, "must be a JSON pointer: it begins with /, and has ~1 for / and ~0 for ~ inside a name")}
	case !changes:
		return nil
	}
	parts := strings.Split(p[1:], "/")
	switch parts[0] {
	case "apiVersion", "kind", "status":
		return field.ErrorList{field.Invalid(path, p, "may not be changed: an override may not touch apiVersion, kind and status")}
	case "metadata":
		return validateMetadataPointer(p, parts[1:], path)
	}
	return nil
}

// validateMetadataPointer allows single labels and annotations that are not the federation's own.
func validateMetadataPointer(p string, parts []string, path *field.Path) field.ErrorList {
	if len(parts) != 2 || parts[0] != "labels" && parts[0] != "annotations" || parts[1] == "" {
		return field.ErrorList{field.Invalid(path, p, "may not be changed: of metadata an override may touch single labels and annotations, as /metadata/labels/tier")}
	}
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[1])
	if prefix, _, _ := strings.Cut(key, "/"); ownPrefixes[prefix] {
		return field.ErrorList{field.Invalid(path, p, "may not be changed: "+key+" is the federation's own")}
	}
	return nil
}
