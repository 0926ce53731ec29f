package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;

/** What a node of KRaft reads first when it starts: {@code meta.properties}, {@code partition.metadata}. */
final class LogDirectories {
    private LogDirectories() {
    }

    /** Throws what ends the start of a node; the answer has how many directories it gives up. */
    static void opened(JsonNode request, ObjectNode answer) throws Exception {
        Properties settings = new Properties();
        settings.put("process.roles", "broker,controller");
        settings.put("node.id", "1");
        settings.put("controller.quorum.voters", "1@localhost:1");
        settings.put("listeners", "PLAINTEXT://localhost:2,CONTROLLER://localhost:1");
        settings.put("controller.listener.names", "CONTROLLER");
        settings.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        settings.put("log.dirs", request.path("logDirs").asText());
        try {
            // By name: these classes need more at compile time than the class path of this project has.
            Object config = method("kafka.server.KafkaConfig", "fromProps").invoke(null, settings);
            Object log = method("org.slf4j.LoggerFactory", "getLogger").invoke(null, "logDirectories");
            Object opened = method("kafka.server.KafkaRaftServer", "initializeLogDirs").invoke(null, config, log, "");
            Object found = opened.getClass().getMethod("_1").invoke(opened);
            answer.put("failed", ((MetaPropertiesEnsemble) found).errorLogDirs().size());
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause() instanceof Exception cause ? cause : thrown;
        }
    }

    /** The topic id that a broker reads in a {@code partition.metadata}; throws what ends its start. */
    static void topicId(JsonNode request, ObjectNode answer) throws Exception {
        // By name, as above.
        String storage = "org.apache.kafka.storage.internals.";
        Class<?> type = Class.forName(storage + "checkpoint.PartitionMetadataFile");
        Class<?> failures = Class.forName(storage + "log.LogDirFailureChannel");
        Object file = type.getConstructor(File.class, failures).newInstance(
            new File(request.path("file").asText()), failures.getConstructor(int.class).newInstance(1));
        try {
            Object found = type.getMethod("read").invoke(file);
            answer.put("topicId", found.getClass().getMethod("topicId").invoke(found).toString());
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause() instanceof Exception cause ? cause : thrown;
        }
    }

    private static Method method(String type, String name) throws ClassNotFoundException {
        return Stream.of(Class.forName(type).getMethods())
            .filter(each -> each.getName().equals(name) && each.getParameterTypes()[0] != Class.class)
            .min((one, other) -> Integer.compare(one.getParameterCount(), other.getParameterCount())).orElseThrow();
    }
}
