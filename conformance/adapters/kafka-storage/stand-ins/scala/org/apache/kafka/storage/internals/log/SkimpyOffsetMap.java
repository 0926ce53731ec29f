package org.apache.kafka.storage.internals.log;

/** The cleaner's map, made as it is since 3.5. */
public final class SkimpyOffsetMap extends kafka.log.SkimpyOffsetMap {
    public SkimpyOffsetMap(int memory) {
        super(memory, "MD5");
    }
}
