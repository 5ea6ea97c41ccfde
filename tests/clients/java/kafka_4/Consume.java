import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads `count` records in a group of either protocol, and commits. */
final class Consume {
    static String run(String bootstrap, Action action) {
        Properties settings = Client.settings(bootstrap, action);
        settings.put("group.id", action.text("group", "group"));
        settings.put("group.protocol", action.text("protocol", "classic"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("isolation.level", action.text("isolation", "read_uncommitted"));
        settings.put("max.partition.fetch.bytes", 32 << 20);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        List<String> fingerprints = new ArrayList<>();
        long deadline = System.currentTimeMillis() + action.timeoutMs();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(action.text("topic")));
            while (!Records.enough(action, fingerprints) && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(500)).forEach(record -> fingerprints.add(fingerprint(record)));
            }
            consumer.commitSync();
        }
        return Records.result(action, fingerprints);
    }

    static String fingerprint(ConsumerRecord<byte[], byte[]> record) {
        Map<String, byte[]> headers = new LinkedHashMap<>();
        for (Header header : record.headers()) {
            headers.put(header.key(), header.value());
        }
        return Records.fingerprint(record.topic(), record.key(), record.value(), headers.entrySet());
    }
}
