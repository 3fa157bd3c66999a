"""LAW: observe, decide, apply; imports ports and core, never adapters."""
