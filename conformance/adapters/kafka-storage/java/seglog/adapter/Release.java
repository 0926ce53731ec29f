package seglog.adapter;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** What Kafka's classes call differently from release to release. */
final class Release {
    private Release() {
    }

    /** A number by its name. */
    static long number(Object holder, String name) {
        return ((Number) value(holder, name)).longValue();
    }

    /** What has a name: a field up to 4.2, a method since. */
    private static Object value(Object holder, String name) {
        try {
            return holder.getClass().getMethod(name).invoke(holder);
        } catch (NoSuchMethodException isField) {
            return field(holder, name);
        } catch (ReflectiveOperationException hidden) {
            throw new IllegalStateException(hidden);
        }
    }

    private static Object field(Object holder, String name) {
        try {
            return holder.getClass().getField(name).get(holder);
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** The setting for the size of a segment; since 4.1 small ones have a setting of their own. */
    static String segmentBytes() {
        try {
            return (String) LogConfig.class.getField("INTERNAL_SEGMENT_BYTES_CONFIG").get(null);
        } catch (NoSuchFieldException isOne) {
            return TopicConfig.SEGMENT_BYTES_CONFIG;
        } catch (IllegalAccessException hidden) {
            throw new IllegalStateException(hidden);
        }
    }

    /** Whether a leader writes messages, where the format of a topic is that of old releases. */
    static boolean keepsMessages() {
        return AppInfoParser.getVersion().matches("[0-2][.].*");
    }

    /** The version of an aborted transaction. Since 4.4 it is read before the entry, and is the highest known or lower. */
    private static long version(Object abortedTransaction) {
        try {
            abortedTransaction.getClass().getMethod("version");
        } catch (NoSuchMethodException isMessage) {
            return number(abortedTransaction, "highestSupportedVersion");
        }
        return number(abortedTransaction, "version");
    }

    /** Aborted transactions, which are of another class since 4.4. */
    static void putAborted(List<?> transactions, ArrayNode found) {
        for (Object entry : transactions) {
            ObjectNode line = found.addObject().put("version", version(entry));
            for (String name : new String[] {"producerId", "firstOffset", "lastOffset", "lastStableOffset"}) {
                line.put(name, Long.toString(number(entry, name)));
            }
        }
    }

    /** What a search of a transaction index found: fields up to 4.3, methods since. */
    static void putSearch(Object result, ObjectNode found) {
        putAborted((List<?>) value(result, "abortedTransactions"), found.putArray("aborted"));
        found.put("isComplete", (Boolean) value(result, "isComplete"));
    }

    /** Append as a leader. Since 4.2 a coordinator names the version of its transactions; markers that name none are of 0. */
    static LogAppendInfo append(UnifiedLog log, MemoryRecords records, int epoch, AppendOrigin origin) throws IOException {
        Method append = Arrays.stream(UnifiedLog.class.getMethods()).filter(method -> method.getName().equals("appendAsLeader"))
            .max(Comparator.comparingInt(Method::getParameterCount)).orElseThrow();
        Object[] arguments =
            {records, epoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0};
        return (LogAppendInfo) called(append, log, Arrays.copyOf(arguments, append.getParameterCount()));
    }

    /** Open a log whose broker has a remote store; nobody waits for its offsets, by the last argument. */
    static UnifiedLog openTiered(Object... arguments) throws IOException {
        Method create = named("create", arguments.length + 1);
        Object[] taken = Arrays.copyOf(arguments, arguments.length + 1);
        try {
            taken[arguments.length] =
                Class.forName(LogConfig.class.getPackageName() + ".LogOffsetsListener").getField("NO_OP_OFFSETS_LISTENER").get(null);
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException(missing);
        }
        return (UnifiedLog) called(create, null, taken);
    }

    /** Tell a log that its segments are copied up to an offset. */
    static void copied(UnifiedLog log, long offset) throws IOException {
        called(named("updateHighestOffsetInRemoteStorage", 1), log, offset);
    }

    private static Method named(String name, int count) {
        return Arrays.stream(UnifiedLog.class.getMethods())
            .filter(method -> method.getName().equals(name) && method.getParameterCount() == count)
            .findFirst().orElseThrow(() -> new Serving.Skip("this release has no remote storage"));
    }

    /** The step of a clean stop that trims the last segment's indexes: by itself since 4.4, within closing before. */
    static void prepareForClose(UnifiedLog log) throws IOException {
        try {
            called(UnifiedLog.class.getMethod("prepareActiveSegmentForClose"), log);
        } catch (NoSuchMethodException isPartOfClosing) {
            return;
        }
    }

    /** The leader epochs of a partition; up to 3.8 nothing of them runs later. */
    static LeaderEpochFileCache epochs(Object... arguments) {
        Constructor<?> made = LeaderEpochFileCache.class.getConstructors()[0];
        try {
            return (LeaderEpochFileCache) made.newInstance(Arrays.copyOf(arguments, made.getParameterCount()));
        } catch (ReflectiveOperationException hidden) {
            throw new IllegalStateException(hidden);
        }
    }

    /** Build the indexes of a segment. Since 4.0 there are always leader epochs. */
    static void recover(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs) throws IOException {
        try {
            called(LogSegment.class.getMethod("recover", ProducerStateManager.class, LeaderEpochFileCache.class), segment,
                producers, epochs);
        } catch (NoSuchMethodException isOptional) {
            recoverOptionally(segment, producers, epochs);
        }
    }

    private static void recoverOptionally(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        try {
            called(LogSegment.class.getMethod("recover", ProducerStateManager.class, Optional.class), segment, producers,
                Optional.of(epochs));
        } catch (NoSuchMethodException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** The first record at a time or later. Since 4.4 the decompressed size of a record is limited: here it is not. */
    @SuppressWarnings("unchecked")
    static Optional<FileRecords.TimestampAndOffset> offsetByTimestamp(LogSegment segment, long timestamp, long start)
            throws IOException {
        for (Method method : LogSegment.class.getMethods()) {
            if (method.getName().equals("findOffsetByTimestamp")) {
                Object[] arguments = {timestamp, start, Integer.MAX_VALUE};
                Object[] taken = Arrays.copyOf(arguments, method.getParameterCount());
                return (Optional<FileRecords.TimestampAndOffset>) called(method, segment, taken);
            }
        }
        throw new Serving.Skip("this release has another lookup by time");
    }

    /** The base offset of the batch at a position; what finds the batch is private in 0.11. */
    static long baseOffset(FileRecords log, int position) throws IOException {
        try {
            Method batchesFrom = FileRecords.class.getDeclaredMethod("batchesFrom", int.class);
            batchesFrom.setAccessible(true);
            return ((RecordBatch) ((Iterable<?>) called(batchesFrom, log, position)).iterator().next()).baseOffset();
        } catch (NoSuchMethodException missing) {
            throw new IllegalStateException(missing);
        }
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
