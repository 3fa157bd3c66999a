"""What AWS answers, and what an EC2NodeClass says, as values; and a table for want of answers."""
