package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadata;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.LocalLog;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/** Indexes, snapshots, checkpoints and names, each by itself. */
final class SmallFiles {
    private static final String EPOCHS = "leader-epoch-checkpoint";

    private SmallFiles() {
    }

    static void parse(JsonNode request, ObjectNode answer) throws IOException {
        String name = request.path("name").asText("");
        try (Scratch scratch = new Scratch()) {
            File file = new File(scratch.partition, name.isEmpty() || name.contains("/") ? "00000000000000000000.x" : name);
            if (request.has("data")) {
                Files.write(file.toPath(), Serving.unhexed(request.get("data")));
            }
            ObjectNode object = answer.putObject("object");
            long base = number(request, "baseOffset", base(name));
            switch (request.path("kind").asText()) {
                case "index" -> index(file, base, object);
                case "timeindex" -> timeIndex(file, base, object);
                case "txnindex" -> transactionIndex(file, base, object);
                case "snapshot" -> snapshot(file, object);
                case "checkpoint" -> checkpoint(file, name, object);
                case "metadata" -> metadata(file, name, object);
                default -> name(name, object);
            }
        }
    }

    private static long base(String name) {
        return name.matches("[0-9]+\\..*") ? LogFileUtils.offsetFromFileName(name) : 0;
    }

    private static void index(File file, long base, ObjectNode object) throws IOException {
        try (OffsetIndex index = new OffsetIndex(file, base, -1, false)) {
            ArrayNode entries = object.put("entryCount", index.entries()).putArray("entries");
            for (int slot = 0; slot < index.entries() - trailing(object, file, Long.BYTES); slot++) {
                OffsetPosition entry = index.entry(slot);
                entries.addArray().add(Long.toString(entry.indexKey())).add(Long.toString(entry.indexValue()));
            }
        }
    }

    private static void timeIndex(File file, long base, ObjectNode object) throws IOException {
        try (TimeIndex index = new TimeIndex(file, base, -1, false)) {
            ArrayNode entries = object.put("entryCount", index.entries()).putArray("entries");
            for (int slot = 0; slot < index.entries() - trailing(object, file, Long.BYTES + Integer.BYTES); slot++) {
                TimestampOffset entry = index.entry(slot);
                entries.addArray().add(Long.toString(entry.indexKey())).add(Long.toString(entry.indexValue()));
            }
        }
    }

    /** How many slots at the end are zero; Kafka's classes count them as entries. */
    private static int trailing(ObjectNode object, File file, int slot) throws IOException {
        byte[] bytes = Files.readAllBytes(file.toPath());
        int zeros = 0;
        while (zeros < bytes.length && bytes[bytes.length - 1 - zeros] == 0) {
            zeros++;
        }
        object.put("fileBytes", bytes.length).put("trailingZeroEntries", zeros / slot);
        return zeros / slot;
    }

    private static void transactionIndex(File file, long base, ObjectNode object) throws IOException {
        try (TransactionIndex index = new TransactionIndex(base, file)) {
            index.sanityCheck();
            Release.putAborted(index.allAbortedTxns(), object.putArray("aborted"));
        }
    }

    private static void snapshot(File file, ObjectNode object) throws IOException {
        ArrayNode producers = object.putArray("producers");
        for (ProducerStateEntry entry : ProducerStateManager.readSnapshot(file)) {
            ObjectNode line = producers.addObject().put("producerId", Long.toString(entry.producerId()))
                .put("producerEpoch", entry.producerEpoch()).put("coordinatorEpoch", entry.coordinatorEpoch())
                .put("lastTimestamp", Long.toString(entry.lastTimestamp()));
            var first = entry.currentTxnFirstOffset();
            line.put("currentTxnFirstOffset", first.isPresent() ? Long.toString(first.getAsLong()) : null);
            ArrayNode batches = line.putArray("batches");
            entry.batchMetadata().forEach(batch -> batches.addObject().put("lastSequence", Release.number(batch, "lastSeq"))
                .put("lastOffset", Long.toString(Release.number(batch, "lastOffset")))
                .put("offsetDelta", Release.number(batch, "offsetDelta"))
                .put("timestamp", Long.toString(Release.number(batch, "timestamp"))));
        }
    }

    private static void checkpoint(File file, String name, ObjectNode object) throws IOException {
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        ArrayNode entries = object.put("version", 0).putArray("entries");
        if (name.equals(EPOCHS)) {
            new LeaderEpochCheckpointFile(file, failures).read().forEach(entry ->
                entries.addArray().add(Long.toString(Release.number(entry, "epoch")))
                    .add(Long.toString(Release.number(entry, "startOffset"))));
            return;
        }
        new OffsetCheckpointFile(file, failures).read().forEach((partition, offset) ->
            entries.addArray().add(partition.topic()).add(Integer.toString(partition.partition())).add(Long.toString(offset)));
    }

    private static void metadata(File file, String name, ObjectNode object) {
        if (!name.equals("partition.metadata") && !name.isEmpty()) {
            throw new Serving.Skip("only partition.metadata is read by a class of its own");
        }
        PartitionMetadata found = new PartitionMetadataFile(file, new LogDirFailureChannel(1)).read();
        object.put("version", found.version()).put("topicId", found.topicId().toString());
    }

    private static void name(String name, ObjectNode object) throws IOException {
        boolean isSegmentFile = name.matches("\\S+\\.(log|index|timeindex|txnindex|snapshot|checkpoint)(\\.\\S+)?");
        if (isSegmentFile || name.equals(EPOCHS) || !name.contains("-")) {
            throw new Serving.Skip("names of files are told apart inside LogLoader");
        }
        TopicPartition found = LocalLog.parseTopicPartitionName(new File(name));
        object.put("topic", found.topic()).put("partition", found.partition());
        String state = name.matches(".*\\.[^.]+-(delete|future|stray)") ? name.substring(name.lastIndexOf('-') + 1) : "";
        object.put("state", state);
    }
}
