package seglog.bench;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** Works with a broker's classes, and the loop that does without most of them. */
public final class Broker implements Main.More {
    @Override
    public List<Contents> pass(JsonNode request, Consumer<Long> spent) throws Exception {
        String path = request.path("path").asText();
        boolean check = request.path("check").asBoolean();
        return switch (request.path("work").asText()) {
            case "visit" -> Main.read(request, spent,
                records -> Loop.visit(((MemoryRecords) records).buffer(), check));
            case "recover" -> List.of(Segments.recover(path, spent));
            case "lookup-warm" -> List.of(Segments.lookup(path, request.path("offsets"), false, spent));
            case "lookup-cold" -> List.of(Segments.lookup(path, request.path("offsets"), true, spent));
            case "time-warm" -> List.of(Segments.times(path, request.path("offsets"), false, spent));
            case "time-cold" -> List.of(Segments.times(path, request.path("offsets"), true, spent));
            case "encode" -> {
                Encoding.prepare(path);
                long start = System.nanoTime();
                Contents made = Encoding.encode();
                spent.accept(System.nanoTime() - start);
                yield List.of(made);
            }
            default -> throw new IllegalArgumentException("no such work");
        };
    }
}
