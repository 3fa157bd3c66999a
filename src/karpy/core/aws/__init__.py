"""Pure decisions about AWS: functions of values that make no calls and read no clock."""
