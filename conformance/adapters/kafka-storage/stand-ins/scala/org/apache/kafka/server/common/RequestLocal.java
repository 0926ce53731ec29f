package org.apache.kafka.server.common;

/** Buffers of a thread, which this release does not have. */
public final class RequestLocal {
    private RequestLocal() {
    }

    public static RequestLocal noCaching() {
        return new RequestLocal();
    }
}
