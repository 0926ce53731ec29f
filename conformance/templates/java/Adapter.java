import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;

/** An adapter in Java, without a library for JSON: change hello, and fill in what your library has; leave the rest. */
public class Adapter {
    // What the library does: Adapter::decode, say. What stays null is not listed, and not asked. Any exception is a
    // refusal; throw new Skip("...") where the library cannot be asked for something.

    /** Adds the records that are delivered, as far as it gets: records.add(record(...)). */
    interface Decoder { void decode(byte[] data, List<String> records) throws Exception; }
    static final Decoder DECODE = null;

    /** Returns the bytes of batches: maps with the fields of the protocol, read by number, bytes and list. */
    interface Encoder { byte[] encode(List<Map<String, Object>> batches) throws Exception; }
    static final Encoder ENCODE = null;

    /** Returns the bytes of ".index" and ".timeindex", and of ".txnindex" if transactions were aborted. */
    interface Indexer { Map<String, byte[]> index(byte[] data, long baseOffset, long intervalBytes) throws Exception; }
    static final Indexer INDEX = null;

    /** Returns {position, baseOffset} of the batch that a reader begins at, or null; a directory holds the files. */
    interface Finder { long[] lookup(Path directory, long offset) throws Exception; }
    static final Finder LOOKUP = null;

    static String hello(String version) {
        Map<String, Object> all = new TreeMap<>();
        all.put("decode", DECODE);
        all.put("encode", ENCODE);
        all.put("index", INDEX);
        all.put("lookup", LOOKUP);
        all.values().removeIf(Objects::isNull);
        return """
            "ok":true,"protocol":1,\
            "implementation":{"name":"your-library","version":"%s","language":"Java"},\
            "ops":[%s],\
            "features":{"magic":[2],"codec":["none","gzip"],"crc":true,"control":"hidden","headers":"ordered",\
            "batchMeta":false,"bytesKeys":true,"partialTail":false,"indexEntry":false}""".formatted(
                version, all.isEmpty() ? "" : "\"" + String.join("\",\"", all.keySet()) + "\"");
    }

    static class Skip extends RuntimeException {
        Skip(String reason) { super(reason); }
    }

    /** Absolute offset, milliseconds; null is null. Headers are keys and values in turn. */
    static String record(long offset, long timestamp, byte[] key, byte[] value, byte[]... headers) {
        List<String> pairs = new ArrayList<>();
        for (int i = 0; i < headers.length; i += 2) pairs.add("[" + hex(headers[i]) + "," + hex(headers[i + 1]) + "]");
        return "{\"offset\":\"" + offset + "\",\"timestamp\":\"" + timestamp + "\",\"key\":" + hex(key)
            + ",\"value\":" + hex(value) + ",\"headers\":[" + String.join(",", pairs) + "]}";
    }

    static String hex(byte[] data) {
        return data == null ? "null" : "\"" + HexFormat.of().formatHex(data) + "\"";
    }

    static String text(String any) {
        StringBuilder safe = new StringBuilder("\"");
        for (char c : String.valueOf(any).toCharArray())
            safe.append(c < 32 || c == '"' || c == '\\' || c > 126 ? String.format("\\u%04x", (int) c) : "" + c);
        return safe.append('"').toString();
    }

    // What a request has: objects are maps, arrays lists; texts, numbers, true and false are texts.

    static final Pattern TOKEN = Pattern.compile("\"([^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+)\"|[{}\\[\\]]|[^\\s\",:{}\\[\\]]+");
    static final Object END = new Object();

    static Object parsed(Matcher tokens) {
        if (!tokens.find()) throw new IllegalArgumentException("a request that ends early");
        if (tokens.group(1) != null) return tokens.group(1);
        switch (tokens.group()) {
            case "{":
                Map<String, Object> map = new LinkedHashMap<>();
                for (Object key; (key = parsed(tokens)) != END; ) map.put((String) key, parsed(tokens));
                return map;
            case "[":
                List<Object> list = new ArrayList<>();
                for (Object one; (one = parsed(tokens)) != END; ) list.add(one);
                return list;
            case "}", "]":
                return END;
            case "null":
                return null;
            default:
                return tokens.group();
        }
    }

    static byte[] bytes(Object field) {
        return field == null ? null : HexFormat.of().parseHex((String) field);
    }

    static long number(Object field) {
        return field == null ? 0 : Long.parseLong((String) field);
    }

    @SuppressWarnings("unchecked")
    static <T> List<T> list(Object field) {
        return field == null ? List.of() : (List<T>) field;
    }

    static String lookedUp(Map<?, ?> request) throws Exception {
        if (request.get("offset") == null) throw new Skip("it finds offsets only");
        Path directory = Files.createTempDirectory("lookup");
        try {
            for (Map.Entry<?, ?> file : ((Map<?, ?>) request.get("files")).entrySet())
                Files.write(directory.resolve((String) file.getKey()), bytes(file.getValue()));
            long[] found = LOOKUP.lookup(directory, number(request.get("offset")));
            return found == null ? "null" : "{\"position\":" + found[0] + ",\"baseOffset\":\"" + found[1] + "\"}";
        } finally {
            for (File file : directory.toFile().listFiles()) file.delete();
            Files.delete(directory);
        }
    }

    static String indexed(Map<?, ?> request) throws Exception {
        long interval = number(request.get("indexIntervalBytes"));
        List<String> files = new ArrayList<>();
        INDEX.index(bytes(request.get("data")), number(request.get("baseOffset")), interval)
            .forEach((ending, content) -> files.add("\"" + ending + "\":" + hex(content)));
        return "{" + String.join(",", files) + "}";
    }

    static String answer(Map<?, ?> request, String version) {
        List<String> records = new ArrayList<>();
        String op = (String) request.get("op"), start = "\"ok\":true";
        try {
            switch (op) {
                case "hello": return hello(version);
                case "decode": DECODE.decode(bytes(request.get("data")), records); break;
                case "encode": return start + ",\"data\":" + hex(ENCODE.encode(list(request.get("batches"))));
                case "index": return start + ",\"files\":" + indexed(request);
                default: return start + ",\"found\":" + lookedUp(request);
            }
        } catch (Skip skip) {
            return "\"skip\":{\"reason\":" + text(skip.getMessage()) + "}";
        } catch (Throwable error) {
            start = "\"ok\":false,\"reject\":{\"class\":\"other\",\"message\":" + text(error.toString())
                + ",\"error\":" + text(error.getClass().getName()) + "}";
        }
        return op.equals("decode") ? start + ",\"batches\":[{\"records\":[" + String.join(",", records) + "]}]" : start;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // keeps output of the library apart from the answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null; ) {
            Map<?, ?> request = (Map<?, ?>) parsed(TOKEN.matcher(line));
            if (request.get("op").equals("stop")) break;
            out.println("{\"seq\":" + request.get("seq") + "," + answer(request, arguments[0]) + "}");
            out.flush();
        }
    }
}
