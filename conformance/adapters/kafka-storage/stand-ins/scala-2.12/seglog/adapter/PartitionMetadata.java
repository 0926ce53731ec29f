package seglog.adapter;

/** What a topic's id is told by since 2.8. */
record PartitionMetadata(int version, Object topicId) {
}
