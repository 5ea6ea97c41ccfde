import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a group: it reads and commits, and tells what happens to it. */
final class ConsumerReactions implements ConsumerRebalanceListener {
    private static final Duration PAUSE = Duration.ofMillis(100);
    private final Options options;
    private final long startedNs = System.nanoTime();
    private int errorsLeft;
    private int records;

    ConsumerReactions(Options options) {
        this.options = options;
        errorsLeft = options.number("errors", 5);
    }

    void run() {
        KafkaConsumer<String, String> consumer = consumer();
        consumer.subscribe(List.of(options.topic), this);
        while (records < options.number("n", 1) && !options.isLate() && errorsLeft > 0) {
            poll(consumer);
        }
        while (records > 0 && errorsLeft > 0) {
            if (!consumer.assignment().isEmpty() && commit(consumer) || options.isLate()) {
                break;
            }
            poll(consumer);
        }
        consumer.close(CloseOptions.timeout(PAUSE));
    }

    private KafkaConsumer<String, String> consumer() {
        Properties settings = options.settings();
        settings.put("group.id", options.text("group", "group"));
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", options.text("reset", "earliest"));
        settings.put("isolation.level", options.text("isolation", "read_uncommitted"));
        settings.put("heartbeat.interval.ms", 300);
        settings.put("session.timeout.ms", 6_000);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private void poll(KafkaConsumer<String, String> consumer) {
        try {
            for (ConsumerRecord<String, String> record : consumer.poll(PAUSE)) {
                records++;
                Event.since(startedNs, "record").with("partition", record.partition()).with("offset", record.offset())
                    .with("value", record.value()).withMs().say();
            }
        } catch (KafkaException error) {
            failed("poll", error);
        }
    }

    private boolean commit(KafkaConsumer<String, String> consumer) {
        try {
            consumer.commitSync(Duration.ofSeconds(3));
            Event.since(startedNs, "committed").withMs().say();
            return true;
        } catch (KafkaException error) {
            failed("commit", error);
            return false;
        }
    }

    private void failed(String where, KafkaException error) {
        errorsLeft--;
        Event.error(startedNs, where, error).say();
        LockSupport.parkNanos(PAUSE.toNanos());
    }

    private void say(String event, Collection<TopicPartition> partitions) {
        Event.since(startedNs, event).with("partitions", partitions.stream().map(TopicPartition::partition).sorted().toList())
            .withMs().say();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        say("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("lost", partitions);
    }
}
