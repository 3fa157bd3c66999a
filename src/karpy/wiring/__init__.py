"""LAW: constructors only. Connects worlds, adapters and controllers, and decides nothing."""
