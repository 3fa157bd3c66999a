"""A cloud in memory: it sells out, changes its prices, takes its time and takes machines back."""
