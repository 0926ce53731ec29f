"""What a cluster was, from the directories that its brokers left: metadata image, groups, transactions, replicas."""
