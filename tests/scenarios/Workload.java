import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

/** The Java clients at work until they are killed: ground.py says how it is called. */
final class Workload {
    static final int PARTITIONS = 3;
    static final String STRINGS = "org.apache.kafka.common.serialization.String";
    static String bootstrap, topic, kind;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        topic = arguments[1];
        kind = arguments[2];
        Thread reader = new Thread(Workload::consume);
        reader.setDaemon(true);
        reader.start();
        while (true) {
            try {
                if (kind.equals("transactions")) {
                    transact();
                } else {
                    produce();
                }
            } catch (KafkaException error) {
                System.out.println("producer " + error);
                Thread.sleep(1000);
            }
        }
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java-scenario");
        settings.put("request.timeout.ms", 4000);
        settings.put("key.serializer", STRINGS + "Serializer");
        settings.put("value.serializer", STRINGS + "Serializer");
        settings.put("key.deserializer", STRINGS + "Deserializer");
        settings.put("value.deserializer", STRINGS + "Deserializer");
        if (kind.equals("sasl")) {
            settings.put("security.protocol", "SASL_PLAINTEXT");
            settings.put("sasl.mechanism", "PLAIN");
            settings.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + "username=\"alice\" password=\"alice-secret\";");
        }
        return settings;
    }

    /** Records to all partitions in turn. */
    static void produce() throws InterruptedException {
        Properties settings = settings();
        settings.put("linger.ms", 5);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int index = 0; ; index++) {
                producer.send(new ProducerRecord<>(topic, index % PARTITIONS, null, "" + index), (sent, error) -> {
                    if (error != null) {
                        System.out.println("record " + error);
                    }
                });
                Thread.sleep(25);
            }
        }
    }

    /** One transaction after another. */
    static void transact() throws InterruptedException {
        Properties settings = settings();
        settings.put("transactional.id", topic);
        settings.put("max.block.ms", 10000);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        try {
            producer.initTransactions();
            while (true) {
                producer.beginTransaction();
                for (int index = 0; index < PARTITIONS; index++) {
                    producer.send(new ProducerRecord<>(topic, index, null, "" + index));
                }
                producer.commitTransaction();
                Thread.sleep(100);
            }
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    /**
     * Read in a classic group, and commit twice a second. A new consumer after an error: after a damaged batch
     * each poll throws, also when the application seeks to where it is.
     */
    static void consume() {
        Properties settings = settings();
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "latest");
        settings.put("auto.commit.interval.ms", 500);
        settings.put("heartbeat.interval.ms", 300);
        settings.put("session.timeout.ms", 10000);
        while (true) {
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(topic));
                while (true) {
                    consumer.poll(Duration.ofMillis(500));
                }
            } catch (KafkaException error) {
                System.out.println("consumer " + error);
            }
        }
    }
}
