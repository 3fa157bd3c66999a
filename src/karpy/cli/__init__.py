"""
LAW: a command parses its input, lets `core` decide, prints the answer and exits.

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 misuse, 3 the
answer is no.
"""
