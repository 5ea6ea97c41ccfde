import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends the records of a seed; in a transaction where there is a transactional id. */
final class Produce {
    static String run(String bootstrap, Action action) throws Exception {
        String transactionalId = action.text("transactional_id", null);
        Properties settings = Client.settings(bootstrap, action);
        settings.put("acks", action.text("acks", "all"));
        settings.put("enable.idempotence", action.flag("idempotent", false) || transactionalId != null);
        settings.put("compression.type", action.text("compression", "none"));
        settings.put("max.request.size", 50 << 20);
        settings.put("buffer.memory", 200 << 20);
        settings.put("linger.ms", 5);
        settings.put("request.timeout.ms", Math.min(30000, action.timeoutMs() - 10));
        settings.put("delivery.timeout.ms", action.timeoutMs());
        settings.put("max.block.ms", action.timeoutMs());
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            if (transactionalId == null) {
                return result(send(producer, action, action.text("seed", "seed"), action.number("count", 0)));
            }
            producer.initTransactions();
            if (action.number("aborted", 0) > 0) {
                producer.beginTransaction();
                send(producer, action, "aborted", action.number("aborted", 0));
                producer.abortTransaction();
            }
            producer.beginTransaction();
            String result = result(send(producer, action, action.text("seed", "seed"), action.number("count", 0)));
            producer.commitTransaction();
            return result;
        }
    }

    private static List<Future<RecordMetadata>> send(
            KafkaProducer<byte[], byte[]> producer, Action action, String seed, int count) throws InterruptedException {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        long started = System.nanoTime();
        int pace = action.number("per_s", 0);
        for (int index = 0; index < count; index++) {
            if (pace > 0) {
                long waitMs = index * 1000L / pace - (System.nanoTime() - started) / 1_000_000;
                Thread.sleep(Math.max(0, waitMs));
            }
            Records made = Records.at(seed, index, action.number("size", 0), action.flag("headers", true));
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(action.text("topic"), made.key, made.value);
            made.headers.forEach(record.headers()::add);
            answers.add(producer.send(record));
            if (pace > 0 && index == 0) { // the pace begins when the broker is reached
                producer.flush();
                started = System.nanoTime();
            }
        }
        producer.flush();
        return answers;
    }

    private static String result(List<Future<RecordMetadata>> answers) throws InterruptedException {
        TreeSet<Integer> failed = new TreeSet<>();
        for (int index = 0; index < answers.size(); index++) {
            try {
                answers.get(index).get();
            } catch (java.util.concurrent.ExecutionException error) {
                failed.add(index);
            }
        }
        return "\"acknowledged\": " + (answers.size() - failed.size()) + ", \"failed\": " + failed;
    }
}
