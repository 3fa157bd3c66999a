"""The demo: a simulated cluster, scripted changes in it, and a log of what happens."""
