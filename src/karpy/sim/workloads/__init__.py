"""The controllers of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs."""
