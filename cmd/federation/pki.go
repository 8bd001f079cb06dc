package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"federation/apiserver"
	"federation/apiserver/etcd"
	"federation/apiserver/pki"
)

// pkiCommand has what is done to the keys in a data directory.
func pkiCommand() *cobra.Command {
	c := &cobra.Command{Use: "pki", Short: "Change the keys and certificates in a data directory"}
	c.AddCommand(rotateCommand())
	return c
}

// then says what a step is followed by.
var then = map[string]string{
	pki.StepTrust:  "start it, take the new kubeconfig files to wherever there are copies, and stop it for the next step: sign",
	pki.StepSign:   "start it, take the new kubeconfig files to wherever there are copies, and stop it for the last step: finish",
	pki.StepFinish: "start it. What the authority of before has signed is worth nothing any more",
}

func rotateCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "rotate trust|sign|finish",
		Short: "Put another certificate authority in the place of the one that signs",
		Long: `Puts another certificate authority in the place of the one that signs, in three steps:

  trust    a new authority is made, and trusted beside the one that signs
  sign     the new one signs: all certificates are made anew at the next start
  finish   the one of before is not trusted any more

Stop the federation for each step and start it after it. Between two steps, take the new kubeconfig files to wherever
there are copies: who has those of the step before is let in, who has older ones is not.

With several apiservers, carry out a step in one data directory and copy pki/ca*, pki/front-proxy-ca* and pki/identity to the
others, then restart them one by one.`,
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
	c.Flags().StringVar(&dataDir, "data-dir", apiserver.NewOptions().DataDir, "folder with the keys of the federation")
	return c
}
