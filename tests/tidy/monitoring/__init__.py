"""Dashboards and alerts, from which deploy/grafana, deploy/prometheus and a page are written."""
