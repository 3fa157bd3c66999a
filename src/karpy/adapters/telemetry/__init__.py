"""What is told to those who watch: metrics, logs and health; nothing here decides anything."""
