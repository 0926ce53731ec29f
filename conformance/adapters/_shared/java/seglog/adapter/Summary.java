package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.LinkedHashMap;
import java.util.Map;

/** Counts of batches and records, and a digest of each field, for answers that are too long to give. */
final class Summary {
    private static final int DIGEST_OVER = 4096;

    private final Map<String, MessageDigest> digests = new LinkedHashMap<>();
    private int batches;
    private int records;

    Summary() {
        for (String name : new String[] {"offset", "timestamp", "key", "value"}) {
            digests.put(name, sha256());
        }
    }

    void startBatch() {
        batches++;
    }

    void add(JsonNode record) {
        records++;
        digests.forEach((name, digest) -> digest.update((text(record.get(name)) + "\n").getBytes(StandardCharsets.US_ASCII)));
    }

    ObjectNode told() {
        ObjectNode line = Serving.JSON.createObjectNode().put("batches", batches).put("records", records);
        digests.forEach((name, digest) -> line.put(name, Serving.HEX.formatHex(digest.digest())));
        return line;
    }

    private static String text(JsonNode value) {
        if (value.isNull()) {
            return "-";
        }
        String text = value.asText();
        return text.length() <= 2 * DIGEST_OVER ? text
            : text.length() / 2 + ":" + Serving.HEX.formatHex(sha256().digest(Serving.HEX.parseHex(text)));
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }
}
