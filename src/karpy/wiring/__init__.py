"""LAW: constructors only. Puts worlds, adapters and controllers together, and decides nothing."""
