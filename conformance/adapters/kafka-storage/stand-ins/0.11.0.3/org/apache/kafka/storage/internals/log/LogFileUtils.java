package org.apache.kafka.storage.internals.log;

import java.io.File;
import kafka.log.Log;

/** Names of files, by the class that makes them since 3.5. */
public final class LogFileUtils {
    private LogFileUtils() {
    }

    public static File logFile(File directory, long baseOffset) {
        return Log.logFile(directory, baseOffset);
    }

    public static long offsetFromFileName(String name) {
        return Log.offsetFromFilename(name);
    }
}
