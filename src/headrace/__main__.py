"""`python -m headrace` is the command line."""

from headrace.cli.app import main

if __name__ == "__main__":
    main()
