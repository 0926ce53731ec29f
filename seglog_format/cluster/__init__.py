"""The state of a cluster from the log directories of its brokers: metadata image, groups, transactions, replicas."""
