"""The life of a NodeClaim and its Node, from launch to termination; pure."""
