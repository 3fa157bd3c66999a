"""LAW: a cluster and a cloud in memory behind the ports; no network, no clock but its loop's."""
