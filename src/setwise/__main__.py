"""`python -m setwise` is `setwise`."""

from setwise.cli import main

if __name__ == "__main__":
    main()
