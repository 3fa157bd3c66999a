"""KWOK as a cloud: machines that exist on paper only, as Nodes that KWOK animates."""
