"""The ground floor: derivative rules, support functions for emitted code, and the eager Tensor."""
