"""What Karpy writes on a NodePool and counts of it; from records to records, pure."""
