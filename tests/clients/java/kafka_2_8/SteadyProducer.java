import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends COUNT records over SASL, so many a second, and counts what is acknowledged:
 * SteadyProducer BOOTSTRAP TOPIC COUNT PER_S. Clients from 2.8 to 3.9 compile it.
 */
final class SteadyProducer {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        int perSecond = Integer.parseInt(arguments[3]);
        AtomicInteger acknowledged = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings(arguments[0]), bytes, bytes)) {
            long started = System.nanoTime();
            for (int index = 0; index < count; index++) {
                long waitMs = index * 1000L / perSecond - (System.nanoTime() - started) / 1_000_000;
                Thread.sleep(Math.max(0, waitMs));
                byte[] value = Integer.toString(index).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(topic, value, value), (metadata, error) -> {
                    if (error != null) {
                        failed.incrementAndGet();
                        System.out.println("failed: " + error);
                    } else if (acknowledged.incrementAndGet() % 50 == 0) {
                        System.out.println("acknowledged so far: " + acknowledged.get());
                    }
                });
            }
        }
        System.out.println("{\"acknowledged\": " + acknowledged.get() + ", \"failed\": " + failed.get() + "}");
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "steady");
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", "PLAIN");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required"
            + " username=\"alice\" password=\"alice-secret\";");
        settings.put("acks", "all");
        settings.put("linger.ms", 5);
        settings.put("request.timeout.ms", 5_000);
        settings.put("delivery.timeout.ms", 40_000);
        settings.put("max.block.ms", 40_000);
        return settings;
    }
}
