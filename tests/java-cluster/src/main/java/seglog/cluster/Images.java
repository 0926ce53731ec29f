package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Replays metadata records by Kafka's own classes, and writes the image down as a snapshot would. */
final class Images {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    private Images() {
    }

    /**
     * Replays {@code records}, values of records in hex, one after the other.
     *
     * <p>The answer has an {@code images} element for each record: the records of a snapshot after it, in hex.
     */
    static void image(JsonNode request, ObjectNode answer) {
        ArrayNode images = answer.putArray("images");
        MetadataImage image = MetadataImage.EMPTY;
        for (JsonNode record : request.get("records")) {
            byte[] value = HexFormat.of().parseHex(record.asText());
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            delta.replay(SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(value)), value.length).message());
            image = delta.apply(Release.PROVENANCE);
            write(image, images.addArray());
        }
    }

    private static void write(MetadataImage image, ArrayNode records) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
            SERDE.write(record, cache, new ByteBufferAccessor(buffer));
            records.add(HexFormat.of().formatHex(buffer.array()));
        }
    }
}
