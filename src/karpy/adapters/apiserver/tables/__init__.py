"""The tables of `kubectl get`: the columns of each kind and the cells of each object."""
