package org.apache.kafka.server.common;

/** Buffers of a thread, by the name that they have since 4.0. */
public final class RequestLocal {
    public final kafka.server.RequestLocal before = kafka.server.RequestLocal.NoCaching();

    private RequestLocal() {
    }

    public static RequestLocal noCaching() {
        return new RequestLocal();
    }
}
