package seglog.adapter;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Optional;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** What Kafka's classes call differently from release to release. */
final class Release {
    private Release() {
    }

    /** A number by its name: a field up to 4.2, a method since. */
    static long number(Object holder, String name) {
        try {
            return ((Number) holder.getClass().getMethod(name).invoke(holder)).longValue();
        } catch (NoSuchMethodException isField) {
            return field(holder, name);
        } catch (ReflectiveOperationException hidden) {
            throw new IllegalStateException(hidden);
        }
    }

    private static long field(Object holder, String name) {
        try {
            return ((Number) holder.getClass().getField(name).get(holder)).longValue();
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** The version of an aborted transaction. Since 4.4 it is read before the entry, and is the highest known or lower. */
    static long version(Object abortedTransaction) {
        try {
            abortedTransaction.getClass().getMethod("version");
        } catch (NoSuchMethodException isMessage) {
            return number(abortedTransaction, "highestSupportedVersion");
        }
        return number(abortedTransaction, "version");
    }

    /** Append as a leader. Since 4.2 a coordinator names the version of its transactions; markers that name none are of 0. */
    static LogAppendInfo append(UnifiedLog log, MemoryRecords records, int epoch, AppendOrigin origin) throws IOException {
        Method append = Arrays.stream(UnifiedLog.class.getMethods()).filter(method -> method.getName().equals("appendAsLeader"))
            .max(Comparator.comparingInt(Method::getParameterCount)).orElseThrow();
        Object[] arguments =
            {records, epoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0};
        return (LogAppendInfo) called(append, log, Arrays.copyOf(arguments, append.getParameterCount()));
    }

    /** The step of a clean stop that trims the last segment's indexes: by itself since 4.4, within closing before. */
    static void prepareForClose(UnifiedLog log) throws IOException {
        try {
            called(UnifiedLog.class.getMethod("prepareActiveSegmentForClose"), log);
        } catch (NoSuchMethodException isPartOfClosing) {
            return;
        }
    }

    /** The first record at a time or later. Since 4.4 the decompressed size of a record is limited: here it is not. */
    @SuppressWarnings("unchecked")
    static Optional<FileRecords.TimestampAndOffset> offsetByTimestamp(LogSegment segment, long timestamp) throws IOException {
        for (Method method : LogSegment.class.getMethods()) {
            if (method.getName().equals("findOffsetByTimestamp")) {
                Object[] arguments = {timestamp, 0L, Integer.MAX_VALUE};
                Object[] taken = Arrays.copyOf(arguments, method.getParameterCount());
                return (Optional<FileRecords.TimestampAndOffset>) called(method, segment, taken);
            }
        }
        throw new Serving.Skip("this release has another lookup by time");
    }

    /** What a method returns; what it throws is thrown as it is. */
    private static Object called(Method method, Object holder, Object... arguments) throws IOException {
        try {
            return method.invoke(holder, arguments);
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof IOException cause) {
                throw cause;
            }
            if (thrown.getCause() instanceof Error cause) {
                throw cause;
            }
            throw (RuntimeException) thrown.getCause();
        } catch (IllegalAccessException hidden) {
            throw new IllegalStateException(hidden);
        }
    }
}
