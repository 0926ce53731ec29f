package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
    final File partition;

    Scratch() throws IOException {
        root = Files.createTempDirectory("adapter");
        partition = Files.createDirectory(root.resolve("topic-0")).toFile();
    }

    /** With the files of a request; a suffix alone is that of base offset 0. */
    static Scratch of(JsonNode request) throws IOException {
        Scratch scratch = new Scratch();
        for (var file : request.path("files").properties()) {
            String name = file.getKey().startsWith(".") ? "0".repeat(20) + file.getKey() : file.getKey();
            Files.write(scratch.partition.toPath().resolve(name), Serving.unhexed(file.getValue()));
        }
        return scratch;
    }

    List<Path> files() throws IOException {
        try (Stream<Path> listed = Files.list(partition.toPath())) {
            return listed.filter(path -> !path.toString().endsWith(".deleted")).sorted().toList();
        }
    }

    long logSize() throws IOException {
        long size = 0;
        for (Path path : files()) {
            size += path.toString().endsWith(".log") ? Files.size(path) : 0;
        }
        return size;
    }

    void put(ObjectNode files) throws IOException {
        for (Path path : files()) {
            files.put(path.getFileName().toString(), Serving.hexed(Files.readAllBytes(path)));
        }
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
