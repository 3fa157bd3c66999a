"""The methods of disruption, one a module; no method knows another."""
