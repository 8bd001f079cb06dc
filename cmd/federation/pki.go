package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"federation/apiserver/etcd"
	"federation/apiserver/pki"
)

// pkiCommand has what is done to the keys in a data directory.
func pkiCommand() *cobra.Command {
	c := &cobra.Command{Use: "pki", Short: "Make, copy and change the keys and certificates in a data directory"}
	c.AddCommand(createCommand(), importCommand(), kubeconfigCommand(), rotateCommand())
	return c
}

// then has what to do after each step.
var then = map[string]string{
	pki.StepTrust:  "start the federation, replace every copy of its kubeconfig files, and stop it for the next step: sign",
	pki.StepSign:   "start the federation, replace every copy of its kubeconfig files, and stop it for the last step: finish",
	pki.StepFinish: "start the federation. It refuses everything that the old authority signed",
}

func rotateCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "rotate trust|sign|finish",
		Short: "Replace the certificate authority",
		Long: `Replaces the certificate authority, in three steps:

  trust    create a new authority and trust it beside the current one
  sign     let the new authority sign: the next start issues all certificates again
  finish   stop trusting the old authority

Stop the federation before each step and start it after. Between two steps, replace every copy of the kubeconfig files:
those of the step before still work, older ones do not. Those of agents (kubectl federation token create), federation-dns
and federation-lb are copies, and so is the authority that Prometheus trusts. Agents need new certificates before finish:
start them with an empty --cert-dir after sign.

With several apiservers, run a step in one data directory, copy pki/ca*, pki/front-proxy-ca* and pki/identity to the
others, and restart them one by one.`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: pki.Steps,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !pki.Exists(dataDir) {
				return fmt.Errorf("--data-dir %s: there is no federation", dataDir)
			}
			release, err := etcd.Lock(dataDir)
			if err != nil {
				return err
			}
			defer release()
			if err := pki.Rotate(dataDir, args[0], time.Now()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is done. Now: %s.\n", args[0], then[args[0]])
			return err
		},
	}
	addDataDir(c, &dataDir)
	return c
}
