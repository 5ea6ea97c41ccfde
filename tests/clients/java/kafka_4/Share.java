import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads `count` records in a share group, from the start of the topic. */
final class Share {
    static String run(String bootstrap, Action action) throws Exception {
        String group = action.text("group", "group");
        try (Admin admin = Admin.create(Client.settings(bootstrap, action))) {
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.GROUP, group),
                List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all().get();
        }
        Properties settings = Client.settings(bootstrap, action);
        settings.put("group.id", group);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        List<String> fingerprints = new ArrayList<>();
        long deadline = System.currentTimeMillis() + action.timeoutMs();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(action.text("topic")));
            while (!Records.enough(action, fingerprints) && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(500)).forEach(record -> fingerprints.add(Consume.fingerprint(record)));
                consumer.commitSync();
            }
        }
        return Records.result(action, fingerprints);
    }
}
