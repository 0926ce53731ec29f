"""The segmented log format of Apache Kafka, written down so exactly that it runs."""
