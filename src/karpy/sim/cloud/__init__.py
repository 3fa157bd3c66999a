"""A cloud in memory, with limited stock, changing prices, delays and interruptions."""
