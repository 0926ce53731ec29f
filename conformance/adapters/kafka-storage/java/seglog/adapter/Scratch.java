package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
}
