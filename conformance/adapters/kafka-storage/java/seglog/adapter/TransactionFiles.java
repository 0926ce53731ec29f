package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.TransactionIndex;
import seglog.kafka.StandingTime;

/** Lookups in transaction indexes and in snapshots of producers. */
final class TransactionFiles {
    private static final int DAY_MS = 24 * 60 * 60 * 1000;

    private TransactionFiles() {
    }

    static void lookup(JsonNode request, ObjectNode answer) throws IOException {
        try (Scratch scratch = Scratch.of(request)) {
            if (request.has("newest")) {
                newestSnapshot(scratch.partition, answer);
            } else {
                aborted(scratch, request, answer.putObject("found"));
            }
        }
    }

    private static void aborted(Scratch scratch, JsonNode request, ObjectNode found) throws IOException {
        Path file = scratch.files().stream().filter(path -> path.toString().endsWith(".txnindex")).reduce((one, other) -> {
            throw new Serving.Skip("an index of transactions is searched by itself");
        }).orElseThrow(() -> new Serving.Skip("there is no index of transactions"));
        try (TransactionIndex index = new TransactionIndex(0, file.toFile())) {
            Release.putSearch(index.collectAbortedTxns(number(request, "fromOffset", 0), number(request, "toOffset", 0)), found);
        }
    }

    /** The snapshot that a log's producers are loaded from. */
    private static void newestSnapshot(File directory, ObjectNode answer) throws IOException {
        ProducerStateManager producers = new ProducerStateManager(new TopicPartition("topic", 0), directory, DAY_MS,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), new StandingTime(0));
        producers.truncateAndReload(0, Long.MAX_VALUE, 0);
        if (producers.mapEndOffset() > 0) {
            ObjectNode found = answer.putObject("found").put("baseOffset", Long.toString(producers.mapEndOffset()));
            ArrayNode ids = found.putArray("producers");
            new TreeSet<>(producers.activeProducers().keySet()).forEach(id -> ids.add(Long.toString(id)));
        }
    }
}
