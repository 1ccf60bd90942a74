"""`python -m srcgrad`: the command line."""

from srcgrad.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
