"""
LAW: a kube-scheduler that decides as the real one does, with the same messages, synchronously.

Callbacks of the store only record changes. The filters define what fits; rosters cache the filter
results and update them from the changes.
"""
