"""What is told of the cluster in numbers, for those who watch; nothing here decides anything."""
