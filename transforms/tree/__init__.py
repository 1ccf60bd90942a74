"""What the passes share: building and walking gast trees, fresh names, dataflow."""
