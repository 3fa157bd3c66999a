"""
Attacks, as tests; and objects spoilt by seed.

    python -m tests.hostile --seeds 200    play seeds 0 to 199
"""
