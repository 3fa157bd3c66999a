"""Responses and messages of AWS, and its node classes, to values."""
