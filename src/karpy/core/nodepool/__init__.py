"""The status of NodePools: conditions, hash, usage; pure functions from records to records."""
