package seglog.oracle;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A partition directory that lasts for one request. */
final class Scratch implements AutoCloseable {
    private final Path root;
    final File directory;

    Scratch() throws IOException {
        root = Files.createTempDirectory("oracle");
        directory = Files.createDirectory(root.resolve("t-0")).toFile();
    }

    /** The bytes of a file, or null where there is none. */
    byte[] bytes(String name) throws IOException {
        Path path = directory.toPath().resolve(name);
        return Files.exists(path) ? Files.readAllBytes(path) : null;
    }

    @Override
    public void close() throws IOException {
        try (Stream<Path> walk = Files.walk(root)) {
            List<Path> paths = walk.sorted(Comparator.reverseOrder()).toList();
            for (Path path : paths) {
                Files.delete(path);
            }
        }
    }
}
