"""What becomes of a NodeClaim, its Node and its NodePool: from records to records, pure."""
