package org.apache.kafka.storage.internals.log;

import java.io.File;

/** A file of a offset index, which a try block closes since 1.0. */
public final class OffsetIndex extends kafka.log.OffsetIndex implements AutoCloseable {
    public OffsetIndex(File file, long baseOffset, int maxIndexSize, boolean writable) {
        super(file, baseOffset, maxIndexSize, writable);
    }
}
