"""What `kubectl get` shows: the columns of each kind and the cells of each object."""
