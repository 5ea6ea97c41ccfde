import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import kafka.api.FetchRequestBuilder;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.message.MessageAndOffset;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java producer and the SimpleConsumer of Kafka 0.8.2 as a client program; ../../actions.py says how it is called. */
final class OldClient {
    public static void main(String[] arguments) {
        for (int index = 1; index < arguments.length; index++) {
            Action action = new Action(arguments[index]);
            String name = action.text("do");
            try {
                String result = name.equals("produce") ? produce(arguments[0], action) : consume(arguments[0], action);
                System.out.printf("{\"do\": \"%s\", %s}%n", name, result);
            } catch (Exception error) {
                error.printStackTrace();
                System.out.printf("{\"do\": \"%s\", \"error\": \"%s\"}%n", name, error.toString().replace('"', '\''));
                System.exit(1);
            }
        }
        System.exit(0);
    }

    private static String produce(String bootstrap, Action action) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java-0.8-test");
        settings.put("acks", action.text("acks", "all"));
        settings.put("compression.type", action.text("compression", "none"));
        settings.put("retries", "5");
        ByteArraySerializer bytes = new ByteArraySerializer();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<byte[], byte[]>(settings, bytes, bytes);
        List<Future<RecordMetadata>> answers = new ArrayList<Future<RecordMetadata>>();
        for (int index = 0; index < action.number("count", 0); index++) {
            Records made = Records.at(action.text("seed", "seed"), index, action.number("size", 0), false);
            answers.add(producer.send(new ProducerRecord<byte[], byte[]>(action.text("topic"), made.key, made.value)));
        }
        List<Integer> failed = new ArrayList<Integer>();
        for (int index = 0; index < answers.size(); index++) {
            try {
                answers.get(index).get();
            } catch (java.util.concurrent.ExecutionException error) {
                failed.add(index);
            }
        }
        producer.close();
        return "\"acknowledged\": " + (answers.size() - failed.size()) + ", \"failed\": " + failed;
    }

    /** Reads every partition from its leader, as Metadata tells it. */
    private static String consume(String bootstrap, Action action) {
        String topic = action.text("topic");
        String[] first = bootstrap.split(",")[0].split(":");
        SimpleConsumer asker = new SimpleConsumer(first[0], Integer.parseInt(first[1]), 10000, 1 << 20, "java-0.8-test");
        List<PartitionMetadata> partitions = asker.send(new TopicMetadataRequest(List.of(topic)))
            .topicsMetadata().get(0).partitionsMetadata();
        asker.close();
        List<String> fingerprints = new ArrayList<String>();
        long deadline = System.currentTimeMillis() + action.timeoutMs();
        long[] offsets = new long[partitions.size()];
        while (!Records.enough(action, fingerprints) && System.currentTimeMillis() < deadline) {
            for (PartitionMetadata partition : partitions) {
                int id = partition.partitionId();
                SimpleConsumer reader = new SimpleConsumer(
                    partition.leader().host(), partition.leader().port(), 10000, 1 << 20, "java-0.8-test");
                FetchResponse response = reader.fetch(new FetchRequestBuilder()
                    .clientId("java-0.8-test").maxWait(100).minBytes(1).addFetch(topic, id, offsets[id], 1 << 20).build());
                for (MessageAndOffset each : response.messageSet(topic, id)) {
                    if (each.offset() >= offsets[id]) {
                        fingerprints.add(Records.fingerprint(
                            topic, content(each.message().key()), content(each.message().payload()), List.of()));
                        offsets[id] = each.nextOffset();
                    }
                }
                reader.close();
            }
        }
        return Records.result(action, fingerprints);
    }

    private static byte[] content(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
