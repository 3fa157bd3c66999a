"""Dashboards and alerts, the sources of deploy/grafana, deploy/prometheus and a page."""
