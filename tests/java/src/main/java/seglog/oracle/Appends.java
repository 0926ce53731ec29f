package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogSegment;
import seglog.kafka.InlineScheduler;

/**
 * How long appends take, for benchmarks: the batches of a file, one append each, into a new directory.
 *
 * <p>A request names the {@code file}, the {@code directory} and the {@code peer}; the answer has the nanoseconds.
 */
public final class Appends {
    private static final int ENTRY_PREFIX_SIZE = 12;
    private static final int SIZE_AT = 8;

    private Appends() {
    }

    /** Answers one JSON object per line until the input ends. */
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = Oracle.JSON.readTree(line);
            ObjectNode answer = Oracle.JSON.createObjectNode();
            List<MemoryRecords> batches = batches(request);
            File directory = new File(request.path("directory").asText());
            answer.put("nanoseconds", request.path("peer").asText().equals("segment")
                ? segment(directory, request, batches) : leader(directory, request, batches));
            answer.put("appends", batches.size());
            System.out.println(Oracle.JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private static List<MemoryRecords> batches(JsonNode request) throws IOException {
        byte[] bytes = Files.readAllBytes(new File(request.path("file").asText()).toPath());
        List<MemoryRecords> found = new ArrayList<>();
        for (int position = 0; position < bytes.length; ) {
            int size = ENTRY_PREFIX_SIZE + ByteBuffer.wrap(bytes).getInt(position + SIZE_AT);
            found.add(MemoryRecords.readableRecords(ByteBuffer.wrap(bytes, position, size).slice()));
            position += size;
        }
        return found;
    }

    /** Into one segment; what a broker knows of the batches by then is worked out before. */
    private static long segment(File directory, JsonNode request, List<MemoryRecords> batches) throws IOException {
        List<Summary> summaries = batches.stream().map(Summary::of).toList();
        try (LogSegment segment = LogSegment.open(directory, 0, Segments.config(request), Time.SYSTEM, 0, false)) {
            long start = System.nanoTime();
            for (int number = 0; number < batches.size(); number++) {
                Release.append(segment, batches.get(number), summaries.get(number));
            }
            return System.nanoTime() - start;
        }
    }

    /** Into a whole log, as a leader: checks, offsets, producers, and then the segment. */
    private static long leader(File directory, JsonNode request, List<MemoryRecords> batches) throws IOException {
        try (Log log = Release.open(
                directory, Segments.config(request), Start.of(request), Time.SYSTEM, new InlineScheduler())) {
            long start = System.nanoTime();
            for (MemoryRecords records : batches) {
                log.appendAsLeader(records, 0, AppendOrigin.CLIENT);
            }
            return System.nanoTime() - start;
        }
    }
}
