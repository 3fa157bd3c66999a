"""What metrics and events report about the cluster; no decision reads it."""
