"""
Random small clusters on which the embedded scheduler and kube-scheduler must agree.

    python -m tests.fidelity --seeds 300     try seeds 0 to 299
    python -m tests.fidelity --seed 17       one seed, with the whole story

One control plane serves all seeds, one after the other, so that clusters do not affect each other.
Pods are given to a scheduler one at a time: then each pod has one correct answer in a given state,
whatever the scores of nodes are.
"""
