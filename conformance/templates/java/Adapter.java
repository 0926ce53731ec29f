import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;

/** An adapter in Java, without a library for JSON: change hello, decode and lookup; leave the rest. */
public class Adapter {
    static String hello(String version) {
        return """
            "ok":true,"protocol":1,\
            "implementation":{"name":"your-library","version":"%s","language":"Java"},\
            "ops":["decode","lookup"],\
            "features":{"magic":[2],"codec":["none","gzip"],"crc":true,"control":"hidden","headers":"ordered",\
            "batchMeta":false,"bytesKeys":true,"partialTail":false,"indexEntry":false}""".formatted(version);
    }

    /** Adds what is delivered, as far as it gets; whatever it throws is a refusal. */
    static void decode(byte[] data, List<String> records) throws Exception {
        // for each record of your library: records.add(record(...));
        throw new IllegalStateException("call your library here, with " + data.length + " bytes");
    }

    /** The batch that a reader begins at, or "null"; a directory holds the files of the partition. */
    static String lookup(Path directory, long offset) throws Exception {
        // return "{\"position\":" + position + ",\"baseOffset\":\"" + baseOffset + "\"}";
        throw new IllegalStateException("call your library here, with " + directory + " and " + offset);
    }

    static String lookedUp(String line) {
        String offset = field(line, "offset");
        if (offset.isEmpty()) return "\"skip\":{\"reason\":\"it finds offsets only\"}";
        try {
            Path directory = Files.createTempDirectory("lookup");
            String files = line.replaceFirst(".*\"files\":\\{([^}]*)}.*", "$1");
            for (Matcher file = Pattern.compile("\"([^\"]+)\":\"([0-9a-f]*)\"").matcher(files); file.find(); )
                Files.write(directory.resolve(file.group(1)), HexFormat.of().parseHex(file.group(2)));
            try {
                return "\"ok\":true,\"found\":" + lookup(directory, Long.parseLong(offset));
            } finally {
                for (File file : directory.toFile().listFiles()) file.delete();
                Files.delete(directory);
            }
        } catch (Throwable error) {
            return refusal(error);
        }
    }

    static String refusal(Throwable error) {
        return "\"ok\":false,\"reject\":{\"class\":\"other\",\"message\":" + text(error.toString()) + "}";
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

    static String answer(String line, String version) {
        if (field(line, "op").equals("hello")) return hello(version);
        if (field(line, "op").equals("lookup")) return lookedUp(line);
        List<String> records = new ArrayList<>();
        String start = "\"ok\":true";
        try {
            decode(HexFormat.of().parseHex(field(line, "data")), records);
        } catch (Throwable error) {
            start = refusal(error);
        }
        return start + ",\"batches\":[{\"records\":[" + String.join(",", records) + "]}]";
    }

    static String field(String line, String name) {
        Matcher match = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(line);
        return match.find() ? match.group(1) : "";
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // keeps output of the library apart from the answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null && !field(line, "op").equals("stop"); ) {
            out.println("{\"seq\":" + field(line, "seq") + "," + answer(line, arguments[0]) + "}");
            out.flush();
        }
    }
}
