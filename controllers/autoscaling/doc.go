// Package autoscaling scales workloads for all clusters together, by the HorizontalPodAutoscalers whose policies say so.
//
//	scaler := autoscaling.New(autoscaling.Options{Kube: kube, Pods: pods, Metrics: metrics, Member: member, Informers: informers, Recorder: recorder})
//	err := scaler.Run(ctx)   // in the process that leads
//
// It runs Kubernetes' own controller of autoscalers against the federation's API: that reads and writes the scale of the federated
// workload, and its number is divided like any other. What differs from one cluster is what the controller is shown: the autoscalers that
// stay at the federation (autoscalers.go), and the pods, usage (readings.go) and other metrics (asks.go) that members report at that moment,
// as far as package plan lets them count.
package autoscaling
