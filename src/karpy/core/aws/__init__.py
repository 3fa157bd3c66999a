"""Decisions that only AWS needs, as functions of what EC2 says and an EC2NodeClass asks; pure."""
