"""
Random clusters by seed, and what must hold for every decision about them.

    python -m tests.fuzz --seeds 1000      try seeds 0 to 999
    python -m tests.fuzz --seed 17         one seed, with the whole story
    python -m tests.fuzz --seed 17 --shrink
"""
