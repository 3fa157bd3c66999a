"""
LAW: a kube-scheduler that decides as the real one does, in its own words, and never waits.

Callbacks of the store only note what changed. What a decision needs of a node is kept up to date
by the changes alone; filters are the law, and rosters only remember what filters said.
"""
