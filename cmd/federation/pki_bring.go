package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"federation/apiserver"
	"federation/apiserver/pki"
)

func createCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "create",
		Short: "Make the authorities and keys of a new federation",
		Long: `Makes the authorities of a new federation and the keys of its tokens and Secrets, in the folder pki of the data
directory, and nothing else. A start makes them, too; make them before where several apiservers are to share them,
and keep a copy.`,
		Example: `  federation pki create --data-dir new
  kubectl create secret generic federation-pki --from-file new/pki`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := pki.Create(dataDir, time.Now())
			if err != nil {
				return fmt.Errorf("--data-dir %q: %w", dataDir, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has the authorities and keys of a new federation. Keep a copy where you keep secrets.\n", filepath.Dir(f.CA))
			return err
		},
	}
	addDataDir(c, &dataDir)
	return c
}

func importCommand() *cobra.Command {
	var from, dataDir string
	c := &cobra.Command{
		Use:   "import",
		Short: "Copy the authorities and keys of a federation into a data directory",
		Long: `Copies the authorities and keys of a federation from a folder, as a mounted Secret, into the data directory of one
of its apiservers, before that starts. Those that differ are replaced, as after a step of "federation pki rotate".
Nothing is changed if one is missing, or if the data directory has those of another federation.`,
		Example: `  federation pki import --from /secrets/pki --data-dir /var/lib/federation`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if from == "" {
				return errors.New("--from is required: the folder with ca.crt, ca.key and so on")
			}
			return pki.Import(from, dataDir)
		},
	}
	c.Flags().StringVar(&from, "from", "", "`FOLDER` with the files of pki/ of another data directory (required)")
	addDataDir(c, &dataDir)
	return c
}

func kubeconfigCommand() *cobra.Command {
	var server, dataDir string
	c := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the administrator's kubeconfig file",
		Example: `  kubectl exec federation-0 -- /federation pki kubeconfig --server https://fed.example.com:6443`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u, err := url.Parse(server); server != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
				return fmt.Errorf("--server %q: must be a URL, as https://fed.example.com:6443", server)
			}
			content, err := pki.KubeconfigFor(pki.FilesIn(dataDir), server)
			if err != nil {
				return fmt.Errorf("--data-dir %q: %w", dataDir, err)
			}
			_, err = cmd.OutOrStdout().Write(content)
			return err
		},
	}
	c.Flags().StringVar(&server, "server", "", "`URL` of the API, where it is reached by another address than on this machine")
	addDataDir(c, &dataDir)
	return c
}

func addDataDir(c *cobra.Command, into *string) {
	c.Flags().StringVar(into, "data-dir", apiserver.NewOptions().DataDir, "folder with the keys of the federation")
}
