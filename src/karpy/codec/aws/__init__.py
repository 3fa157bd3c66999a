"""What AWS answers to values, and values to requests."""
