package org.apache.kafka.common.message;

/** The message of a fetch, which has been generated since 2.8. */
public final class FetchResponseData {
    private FetchResponseData() {
    }

    /** An aborted transaction, with the names that its parts have since then. */
    public record AbortedTransaction(long producerId, long firstOffset) {
    }
}
