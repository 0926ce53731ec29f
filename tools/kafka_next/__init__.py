"""The changes of a release of Kafka: in messages, settings, features, classes, code, and answers to all cases.

Everything is read from the jars that Maven fetches. Only facts are kept: names, types, versions, levels, defaults.
"""
