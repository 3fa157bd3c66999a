"""LAW: the defaults of built-in kinds: functions of an object that share its unchanged parts."""
