package pki

import (
	"bytes"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the name of the cluster and of the context in the kubeconfig files.
const contextName = "federation"

// ensureKubeconfigs writes files that differ: at the first start, and when the server's address or a certificate has
// changed. The administrator's comes last.
func ensureKubeconfigs(f *Files, server string) error {
	if err := ensureKubeconfig(f.ControllersKubeconfig, server, f.CA, f.ControllersCert, f.ControllersKey); err != nil {
		return err
	}
	if err := ensureKubeconfig(f.SuperAdminKubeconfig, server, f.CA, f.SuperAdminCert, f.SuperAdminKey); err != nil {
		return err
	}
	return ensureKubeconfig(f.AdminKubeconfig, server, f.CA, f.AdminCert, f.AdminKey)
}

func ensureKubeconfig(path, server, ca, cert, key string) error {
	cluster, auth := api.NewCluster(), api.NewAuthInfo()
	cluster.Server = server
	for file, into := range map[string]*[]byte{
		ca: &cluster.CertificateAuthorityData, cert: &auth.ClientCertificateData, key: &auth.ClientKeyData,
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		*into = content
	}
	config := api.NewConfig()
	config.Clusters[contextName] = cluster
	config.AuthInfos[contextName] = auth
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, content) {
		return nil
	}
	return write(path, content)
}

// KubeconfigFor returns the administrator's kubeconfig file, with another address of the API in it unless server is empty.
func KubeconfigFor(f *Files, server string) ([]byte, error) {
	config, err := clientcmd.LoadFromFile(f.AdminKubeconfig)
	if err != nil {
		return nil, err
	}
	if server != "" {
		config.Clusters[contextName].Server = server
	}
	return clientcmd.Write(*config)
}
