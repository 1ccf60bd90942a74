"""The derivative rules: `table` says how they are written; each other file is a chapter of NumPy's or SciPy's manual."""
