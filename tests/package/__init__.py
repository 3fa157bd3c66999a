"""What is uploaded: the wheel and the sources, built, looked into, and run as people would."""
