package org.apache.kafka.storage.internals.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import kafka.log.LogLoader$;

/** The empty file of a clean stop, by the class that handles it in later releases. */
public final class CleanShutdownFileHandler {
    private final Path file;

    public CleanShutdownFileHandler(String directory) {
        file = Path.of(directory, LogLoader$.MODULE$.CleanShutdownFile());
    }

    public void write(long brokerEpoch) throws IOException {
        Files.createFile(file);
    }

    public void delete() throws IOException {
        Files.deleteIfExists(file);
    }

    public boolean exists() {
        return Files.exists(file);
    }
}
