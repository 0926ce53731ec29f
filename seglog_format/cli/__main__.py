"""``python -m seglog_format.cli``."""

from seglog_format.cli.main import main

if __name__ == "__main__":
    main()
