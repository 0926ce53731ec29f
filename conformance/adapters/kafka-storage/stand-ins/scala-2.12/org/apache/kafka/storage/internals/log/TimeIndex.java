package org.apache.kafka.storage.internals.log;

import java.io.File;

/** A file of a time index, which a try block closes since 1.0. */
public final class TimeIndex extends kafka.log.TimeIndex implements AutoCloseable {
    public TimeIndex(File file, long baseOffset, int maxIndexSize, boolean writable) {
        super(file, baseOffset, maxIndexSize, writable);
    }
}
