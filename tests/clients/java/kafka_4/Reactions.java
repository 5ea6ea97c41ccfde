import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/** The Java clients of Kafka 4.3 as a program that tells event by event; ../../../drivers.py says how it is called. */
final class Reactions {
    public static void main(String[] arguments) {
        List<String> words = Arrays.asList(arguments);
        Options options = new Options(words.get(0), words.get(2), words.subList(3, words.size()));
        watch(options.timeoutMs());
        switch (words.get(1)) {
            case "produce" -> produce(options);
            case "transaction" -> transaction(options);
            case "consume" -> new ConsumerReactions(options).run();
            case "admin" -> administrate(options);
            default -> throw new IllegalArgumentException("unknown action " + words.get(1));
        }
        end();
    }

    private static void end() {
        Event.named("done").say();
        Runtime.getRuntime().halt(0);
    }

    /** End the program in time, whatever its client is waiting for. */
    private static void watch(int timeoutMs) {
        long startedNs = System.nanoTime();
        Thread watchdog = new Thread(() -> {
            try {
                Thread.sleep(timeoutMs);
            } catch (InterruptedException impossible) {
                throw new AssertionError(impossible);
            }
            Event.since(startedNs, "error").with("where", "program").with("error", "NOT_DONE_IN_TIME")
                .with("message", "").with("retriable", false).with("fatal", false).withMs().say();
            end();
        });
        watchdog.setDaemon(true);
        watchdog.start();
    }

    private static KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    /** Send one record and wait for its outcome; what is thrown is Kafka's error. */
    private static void send(KafkaProducer<String, String> producer, String topic, int index) throws Exception {
        long startedNs = System.nanoTime();
        RecordMetadata met = producer.send(new ProducerRecord<>(topic, Integer.toString(index))).get();
        Event.since(startedNs, "produced").with("i", index).with("partition", met.partition())
            .with("offset", met.offset()).withMs().say();
    }

    private static void produce(Options options) {
        try (KafkaProducer<String, String> producer = producer(options.producerSettings())) {
            for (int index = 0; index < options.number("n", 1) && !options.isLate(); index++) {
                long startedNs = System.nanoTime();
                try {
                    send(producer, options.topic, index);
                } catch (Exception error) {
                    Event.error(startedNs, "produce", error).with("i", index).say();
                }
            }
        }
    }

    private static void transaction(Options options) {
        Properties settings = options.producerSettings();
        settings.put("enable.idempotence", true);
        settings.put("transactional.id", options.text("id", "id"));
        settings.put("transaction.timeout.ms", 10_000);
        settings.put("max.block.ms", options.patienceMs() / 2);    // a commit and an abort have the time together
        // Not closed: close() may wait for a broker that will not answer, and the program ends anyway.
        KafkaProducer<String, String> producer = producer(settings);
        String where = "init";
        long startedNs = System.nanoTime();
        try {
            producer.initTransactions();
            Event.since(startedNs, "initialised").withMs().say();
            where = "begin";
            producer.beginTransaction();
            where = "produce";
            for (int index = 0; index < options.number("n", 1); index++) {
                startedNs = System.nanoTime();
                send(producer, options.topic, index);
            }
            where = "commit";
            startedNs = System.nanoTime();
            producer.commitTransaction();
            Event.since(startedNs, "committed").withMs().say();
        } catch (Exception error) {
            Event event = Event.error(startedNs, where, error);
            if (where.equals("init")) {
                event.with("abortable", false).say();
            } else {
                abort(producer, event);
            }
        }
    }

    /** Whether an error was fatal is what the client says when it is asked to abort. */
    private static void abort(KafkaProducer<String, String> producer, Event error) {
        long startedNs = System.nanoTime();
        try {
            producer.abortTransaction();
            error.with("fatal", false).with("abortable", true).say();
            Event.since(startedNs, "aborted").withMs().say();
        } catch (KafkaException refused) {
            error.with("fatal", true).with("abortable", false).say();
            Event.error(startedNs, "abort", refused).with("fatal", true).with("abortable", false).say();
        }
    }

    private static void administrate(Options options) {
        String operation = options.text("op", "describe");
        List<String> names = List.of(options.topic);
        long startedNs = System.nanoTime();
        try (Admin admin = Admin.create(options.settings())) {
            Event event = Event.since(startedNs, operation + "d");
            switch (operation) {
                case "create" -> admin.createTopics(List.of(new NewTopic(
                    options.topic, options.number("partitions", 1), (short) options.number("replicas", 3)))).all().get();
                case "describe" -> event.with("leaders", admin.describeTopics(names).allTopicNames().get()
                    .get(options.topic).partitions().stream().map(each -> each.leader() == null ? -1 : each.leader().id()).toList());
                case "delete" -> admin.deleteTopics(names).all().get();
                default -> throw new IllegalArgumentException("unknown op " + operation);
            }
            event.withMs().say();
        } catch (Exception error) {
            Event.error(startedNs, operation, error).say();
        }
    }

    private Reactions() {
    }
}
