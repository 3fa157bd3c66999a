"""Karpy and Karpenter, one after the other, on a real control plane."""
