"""
Random stories by seed: a cluster, an operator, everything that can go wrong, then calm.

    python -m tests.swarm --seeds 200      play seeds 0 to 199, on two cores
    python -m tests.swarm --seed 17        one seed, with the whole story
"""
