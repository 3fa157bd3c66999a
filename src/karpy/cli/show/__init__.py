"""A cluster that lives for a minute, a story told in it, and somebody who tells what happens."""
