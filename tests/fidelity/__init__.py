"""
Random small clusters on which the embedded scheduler and kube-scheduler must be of one mind.

    python -m tests.fidelity --seeds 300     try seeds 0 to 299
    python -m tests.fidelity --seed 17       one seed, with the whole story

One control plane serves all seeds, one after the other, so that nothing of one cluster can be seen
from another. Pods are put to a scheduler one at a time: the same question, asked in the same state,
has one answer, whatever the scheduler prefers.
"""
