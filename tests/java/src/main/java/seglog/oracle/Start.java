package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;

/** What a broker knows of a log before it opens it. */
record Start(long logStartOffset, long recoveryPoint, boolean isClean) {
    static final int TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000;
    static final int PRODUCER_EXPIRATION_MS = 24 * 60 * 60 * 1000;
    static final int EXPIRATION_CHECK_MS = 10 * 60 * 1000;

    static Start of(JsonNode request) {
        return new Start(request.path("logStartOffset").asLong(0), request.path("recoveryPoint").asLong(0),
            request.path("isClean").asBoolean(true));
    }
}
