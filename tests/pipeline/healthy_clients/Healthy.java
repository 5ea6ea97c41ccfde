import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The Java clients at work as they should be: BOOTSTRAP SECONDS TOPIC QUIET_TOPIC. A producer; one that sends few
 * records without keys to the second topic, and by KIP-794 changes its partition after 16 kB; a group of KIP-848 and
 * a share group with two members each; an administrator. Each says at its end, in a line of JSON, what it did.
 */
final class Healthy {
    static final String NAME = "healthy-java", STRING = "org.apache.kafka.common.serialization.String";
    static final int BURST = 150, BURST_MS = 500, LOOK_MS = 10_000, PATIENCE_MS = 40_000;
    static final int VISIT_MS = 200;
    static String bootstrap, topic, quietTopic;
    static long end;

    interface Work {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        end = System.currentTimeMillis() + (long) (Double.parseDouble(arguments[1]) * 1000);
        topic = arguments[2];
        quietTopic = arguments[3];
        List<Thread> threads = List.of(
            thread(Healthy::produce), thread(Healthy::visit), thread(Healthy::look),
            thread(() -> consume(1)), thread(() -> consume(2)), thread(() -> share(1)), thread(() -> share(2)));
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static Thread thread(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.start();
        return thread;
    }

    static Properties settings(String role) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", NAME + "-" + role);
        settings.put("key.serializer", STRING + "Serializer");
        settings.put("value.serializer", STRING + "Serializer");
        settings.put("key.deserializer", STRING + "Deserializer");
        settings.put("value.deserializer", STRING + "Deserializer");
        return settings;
    }

    static boolean goesOn() {
        return System.currentTimeMillis() < end;
    }

    static void say(String role, String what, long count) {
        System.out.printf("{\"client_id\": \"%s-%s\", \"%s\": %d}%n", NAME, role, what, count);
    }

    static void produce() throws Exception {
        Properties settings = settings("producer");
        settings.put("compression.type", "zstd");
        settings.put("linger.ms", 100);
        AtomicLong acknowledged = new AtomicLong();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int index = 0; goesOn(); Thread.sleep(BURST_MS)) {
                for (int last = index + BURST; index < last; index++) {
                    String value = "{\"shipment\": " + index + ", \"notes\": \"" + "none ".repeat(30) + "\"}";
                    producer.send(new ProducerRecord<>(topic, "customer-" + index % 500, value), (sent, error) -> {
                        if (error == null) {
                            acknowledged.incrementAndGet();
                        } else {
                            error.printStackTrace();
                        }
                    });
                }
            }
        }
        say("producer", "acknowledged", acknowledged.get());
    }

    static void visit() throws Exception {
        long count = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings("visitor"))) {
            for (; goesOn(); count++) {
                producer.send(new ProducerRecord<>(quietTopic, "visit")).get();
                Thread.sleep(VISIT_MS);
            }
        }
        say("visitor", "sent", count);
    }

    static void consume(int member) {
        Properties settings = settings("member-" + member);
        settings.put("group.id", NAME + "-group");
        settings.put("group.protocol", "consumer");
        settings.put("auto.offset.reset", "earliest");
        long count = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (goesOn() || count == 0 && System.currentTimeMillis() < end + PATIENCE_MS) {
                count += consumer.poll(Duration.ofMillis(500)).count();
            }
        }
        say("member-" + member, "consumed", count);
    }

    static void share(int member) {
        Properties settings = settings("sharer-" + member);
        settings.put("group.id", NAME + "-share");
        long count = 0;
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (goesOn()) {
                count += consumer.poll(Duration.ofMillis(500)).count();
            }
        }
        say("sharer-" + member, "consumed", count);
    }

    static void look() throws Exception {
        int looks = 0;
        try (Admin admin = Admin.create(settings("admin"))) {
            for (; goesOn(); looks++) {
                admin.describeTopics(List.of(topic)).allTopicNames().get();
                admin.listGroups().all().get();
                Thread.sleep(Math.min(LOOK_MS, Math.max(1, end - System.currentTimeMillis())));
            }
        }
        say("admin", "looks", looks);
    }
}
