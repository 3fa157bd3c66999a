"""Which nodes may go, why not the others, and how a decision is carried to its end."""
