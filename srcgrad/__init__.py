"""srcgrad."""
