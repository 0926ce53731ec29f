package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.stream.Stream;
import seglog.kafka.ScratchDirectory;

/** The directory of a request, filled from it and read into the answer. */
final class Scratch extends ScratchDirectory {
    Scratch() throws IOException {
        super();
    }

    /** With the files of a request; a suffix alone is that of base offset 0. */
    static Scratch of(JsonNode request) throws IOException {
        Scratch scratch = new Scratch();
        for (var file : request.path("files").properties()) {
            String name = file.getKey().startsWith(".") ? "0".repeat(20) + file.getKey() : file.getKey();
            Files.write(scratch.partition.toPath().resolve(name), Serving.unhexed(file.getValue()));
        }
        for (var file : request.path("options").path("modified").properties()) {
            Files.setLastModifiedTime(
                scratch.partition.toPath().resolve(file.getKey()), FileTime.fromMillis(file.getValue().asLong()));
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

    /** Names of the files that wait for their removal. */
    void putDeleted(ArrayNode names) throws IOException {
        try (Stream<Path> listed = Files.list(partition.toPath())) {
            listed.map(path -> path.getFileName().toString()).filter(name -> name.endsWith(".deleted")).sorted()
                .forEach(names::add);
        }
    }

    /** When each log was last written. */
    void putModified(ObjectNode times) throws IOException {
        for (Path path : files()) {
            String name = path.getFileName().toString();
            if (name.endsWith(".log")) {
                times.put(name, Long.toString(Files.getLastModifiedTime(path).toMillis()));
            }
        }
    }
}
