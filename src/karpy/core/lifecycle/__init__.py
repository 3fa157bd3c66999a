"""What becomes of a NodeClaim, its Node and its NodePool: pure functions from records to records."""
