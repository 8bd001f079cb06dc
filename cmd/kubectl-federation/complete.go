package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
)

// completeName is the name of the program that kubectl calls for a plugin's completions.
const completeName = "kubectl_complete-federation"

// commandArguments returns the command line: it passes kubectl's completion requests to cobra's own command.
func commandArguments(argv []string) []string {
	if filepath.Base(argv[0]) == completeName {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// completeTimeout is how long a person waits for a Tab.
const completeTimeout = 2 * time.Second

type completion = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// completeWith makes a completion from a function that queries the federation. If that fails, it offers nothing.
func (t *target) completeWith(names func(ctx context.Context, f *client.Federation, args []string) []string) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		f, err := t.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		defer cancel()
		return withPrefix(prefix, names(ctx, f, args)), cobra.ShellCompDirectiveNoFileComp
	}
}

func withPrefix(prefix string, words []string) []string {
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, prefix) })
	slices.Sort(words)
	return slices.Compact(words)
}

// clusterNames offers the clusters that are not named yet.
func clusterNames(ctx context.Context, f *client.Federation, args []string) (names []string) {
	all, _ := f.Clusters(ctx) // nothing is offered then
	for _, c := range all {
		if !slices.Contains(args, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// oneCluster offers clusters for a command that takes one.
func oneCluster(ctx context.Context, f *client.Federation, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	return clusterNames(ctx, f, args)
}

// oneObject offers the objects of one of our own kinds, for a command that takes one.
func oneObject(r schema.GroupVersionResource) func(context.Context, *client.Federation, []string) []string {
	return func(ctx context.Context, f *client.Federation, args []string) (names []string) {
		if len(args) > 0 {
			return nil
		}
		_ = client.ListPages(ctx, f.Dynamic.Resource(r), metav1.ListOptions{}, func(u *unstructured.Unstructured) error { // nothing is offered then
			names = append(names, u.GetName())
			return nil
		})
		return names
	}
}

// placeNames offers the zones or regions of clusters.
func placeNames(of func(*v1beta1.Cluster) []string) func(context.Context, *client.Federation, []string) []string {
	return func(ctx context.Context, f *client.Federation, _ []string) (names []string) {
		all, _ := f.Clusters(ctx) // nothing is offered then
		for _, c := range all {
			names = append(names, of(c)...)
		}
		return names
	}
}

// completeObjects offers KIND/ for a first word, and the objects of a kind behind its slash.
func completeObjects(ctx context.Context, f *client.Federation, args []string, prefix string) (words []string) {
	if len(args) > 0 {
		return nil
	}
	kind, _, named := strings.Cut(prefix, "/")
	if !named {
		for _, k := range v1beta1.FederatedKinds {
			words = append(words, strings.ToLower(k.Kind)+"/")
		}
		return words
	}
	resource, namespaced, err := f.Resource(kind)
	if err != nil {
		return nil
	}
	namespace := ""
	if namespaced {
		namespace = f.Namespace
	}
	page, err := f.Metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: client.PageSize})
	if err != nil {
		return nil
	}
	for _, o := range page.Items {
		words = append(words, kind+"/"+o.Name)
	}
	return words
}

// fixedWords offers words.
func fixedWords(words ...string) completion {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(prefix, slices.Clone(words)), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeContexts offers those of the kubeconfig.
func completeContexts(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	file, _ := c.Flags().GetString("kubeconfig")
	return contextsOf(file, prefix)
}

// memberContexts offers the contexts of the member's kubeconfig, by default the federation's.
func memberContexts(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if file, _ := c.Flags().GetString("member-kubeconfig"); file != "" {
		return contextsOf(file, prefix)
	}
	return completeContexts(c, args, prefix)
}

func contextsOf(file, prefix string) ([]string, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := rules.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	return withPrefix(prefix, names), cobra.ShellCompDirectiveNoFileComp
}
