package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Optional;

/** What a broker knows when it compacts a log: how far it has been, how far it may go, how much it can remember. */
record Cleaning(Optional<Long> cleanerOffset, long highWatermark, int mapSlots, int bufferSize) {
    private static final int MANY_KEYS = 100_000;
    private static final int LARGE = 1 << 20;

    static Cleaning of(JsonNode request) {
        return new Cleaning(
            request.has("cleanerOffset") ? Optional.of(request.path("cleanerOffset").asLong()) : Optional.empty(),
            request.path("highWatermark").asLong(Long.MAX_VALUE), request.path("mapSlots").asInt(MANY_KEYS),
            request.path("bufferSize").asInt(LARGE));
    }
}
