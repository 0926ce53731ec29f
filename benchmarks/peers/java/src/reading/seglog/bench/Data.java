package seglog.bench;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;

/** The log that is read, in one part for each thread; it is kept for the next pass. */
final class Data {
    private static String known = "";
    private static List<Records> parts = List.of();

    private Data() {
    }

    /** Parts of a file that is mapped, read into memory, or read piece by piece. */
    static List<Records> parts(String path, String how, int threads) throws IOException {
        String asked = String.join(" ", path, how, Integer.toString(threads));
        if (!asked.equals(known)) {
            parts = List.of();
            Records whole = open(new File(path), how);
            parts = threads == 1 ? List.of(whole) : split(whole, threads);
            known = asked;
        }
        return parts;
    }

    private static Records open(File file, String how) throws IOException {
        return switch (how) {
            case "mmap" -> MemoryRecords.readableRecords(map(file));
            case "heap", "loop" -> MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file.toPath())));
            default -> FileRecords.open(file, false);
        };
    }

    static ByteBuffer map(File file) throws IOException {
        try (FileChannel channel = FileChannel.open(file.toPath(), StandardOpenOption.READ)) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
        }
    }

    private static List<Records> split(Records whole, int threads) throws IOException {
        List<Records> found = new ArrayList<>();
        int start = 0;
        int position = 0;
        for (RecordBatch batch : whole.batches()) {
            position += batch.sizeInBytes();
            if (position >= (long) whole.sizeInBytes() * (found.size() + 1) / threads) {
                found.add(slice(whole, start, position - start));
                start = position;
            }
        }
        return found;
    }

    private static Records slice(Records whole, int start, int size) throws IOException {
        if (whole instanceof MemoryRecords memory) {
            return MemoryRecords.readableRecords(memory.buffer().slice(start, size));
        }
        return ((FileRecords) whole).slice(start, size);
    }
}
