package seglog.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Map;

/** Answers whatever is asked of Kafka's own classes. */
public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Answers.Operation> OPERATIONS = Map.ofEntries(
        Map.entry("index", Segments::index),
        Map.entry("recover", Segments::recover),
        Map.entry("lookup", Segments::lookup),
        Map.entry("write", Logs::write),
        Map.entry("load", Logs::load),
        Map.entry("clean", Logs::clean),
        Map.entry("read", Reads::read),
        Map.entry("dump", Dumps::dump),
        Map.entry("create", Clients::create),
        Map.entry("consume", Clients::consume),
        Map.entry("decode", Memory::decode),
        Map.entry("tier", Tier::replay));

    private Oracle() {
    }

    /** Runs until the input ends. */
    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        System.setOut(Dumps.OUTPUT);
        Answers.give(OPERATIONS, answers);
    }
}
