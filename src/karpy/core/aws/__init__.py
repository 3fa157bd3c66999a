"""Pure decisions about AWS: functions of values, which know no call and no clock."""
