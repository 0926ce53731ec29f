package seglog.vectors;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;

/** Cases of the conformance suite of the segmented log format, each a line of JSON for a parser of your choice. */
public final class Vectors {
    private Vectors() {
    }

    /** Each case: an object with id, op, level, result, request and expect. Close the stream. */
    public static Stream<String> cases() {
        return new BufferedReader(new InputStreamReader(
            Vectors.class.getResourceAsStream("vectors.jsonl"), StandardCharsets.UTF_8)).lines();
    }
}
