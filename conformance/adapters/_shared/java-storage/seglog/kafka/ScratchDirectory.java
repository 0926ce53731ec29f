package seglog.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A partition directory that lasts for one request. */
public class ScratchDirectory implements AutoCloseable {
    private final Path root;
    public final File partition;

    public ScratchDirectory() throws IOException {
        root = Files.createTempDirectory("seglog");
        partition = Files.createDirectory(root.resolve("topic-0")).toFile();
    }

    /** The bytes of a file, or null where there is none. */
    public byte[] bytes(String name) throws IOException {
        Path path = partition.toPath().resolve(name);
        return Files.exists(path) ? Files.readAllBytes(path) : null;
    }

    @Override
    public void close() throws IOException {
        List<Path> paths;
        try (Stream<Path> walk = Files.walk(root)) {
            paths = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path path : paths) {
            Files.deleteIfExists(path);
        }
    }
}
