// Package autoscaling scales workloads for all clusters together, by the HorizontalPodAutoscalers whose policies say so.
//
//	scaler, err := autoscaling.New(autoscaling.Options{Kube: kube, Pods: pods, Metrics: metrics, Informers: informers, Recorder: recorder})
//	err = scaler.Run(ctx)   // in the process that leads
//
// It runs Kubernetes' own controller of autoscalers against the federation's API: that reads and writes the scale of the federated
// workload, and its number is divided like any other. What differs from one cluster is what the controller is shown: the autoscalers that
// stay at the federation (autoscalers.go), and the pods and usage that members report at that moment (readings.go), as far as package
// plan lets them count.
package autoscaling
