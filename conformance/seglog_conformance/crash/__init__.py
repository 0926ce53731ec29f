"""Does a log survive a power cut? A recording file system, the states that a cut may leave, and their judge."""
