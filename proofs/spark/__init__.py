"""What the proofs of the data source for Spark share."""
