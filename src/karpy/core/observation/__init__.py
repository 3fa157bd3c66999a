"""What metrics report of the cluster; nothing here decides anything."""
