"""LAW: the validation of built-in kinds: functions that yield faults with upstream messages."""
