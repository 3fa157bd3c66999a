"""LAW: a world in memory behind the same ports; touches no network and no clock but its loop's."""
