package org.apache.kafka.storage.internals.log;

import java.io.File;

/** Names of files, by the class that makes them since 3.5. */
public final class LogFileUtils {
    private LogFileUtils() {
    }

    public static File logFile(File directory, long baseOffset) {
        return kafka.log.UnifiedLog$.MODULE$.logFile(directory, baseOffset, "");
    }

    public static long offsetFromFileName(String name) {
        return kafka.log.UnifiedLog$.MODULE$.offsetFromFileName(name);
    }
}
