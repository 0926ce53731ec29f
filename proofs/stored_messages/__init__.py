"""Messages for Kafka's own topics, written by the generated classes of each release."""
