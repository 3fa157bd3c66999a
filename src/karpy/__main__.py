"""Run the program as `python -m karpy`."""

from karpy.cli.main import main

if __name__ == "__main__":
    main()
