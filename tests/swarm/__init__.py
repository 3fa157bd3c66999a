"""
Random stories by seed: a cluster, operators, random failures, then a calm end.

    python -m tests.swarm --seeds 200      play seeds 0 to 199, on two cores
    python -m tests.swarm --seed 17        one seed, with the whole story
"""
