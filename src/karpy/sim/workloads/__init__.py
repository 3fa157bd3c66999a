"""Controllers that make pods of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs."""
