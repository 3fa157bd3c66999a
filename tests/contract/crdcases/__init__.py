"""What an API server must accept and refuse of our custom resources; data for any runner."""
