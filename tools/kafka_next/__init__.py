"""What a release of Kafka changed: its messages, settings, features, classes, code, and answers to all cases.

Everything is read from the jars that Maven brings. Only facts are kept: names, types, versions, levels, defaults.
"""
