import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Creates a topic, looks at everything the admin client can name, and deletes the topic. */
final class Administrate {
    static String run(String bootstrap, Action action) throws Exception {
        if (action.flag("controllers", false)) {
            return controllers(bootstrap, action);
        }
        String topic = action.text("topic");
        try (Admin admin = Admin.create(Client.settings(bootstrap, action))) {
            NewTopic made = new NewTopic(
                topic, action.number("partitions", 3), (short) action.number("replication_factor", 1));
            admin.createTopics(List.of(made)).all().get();
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            int partitions = 0;
            while (partitions == 0) {
                try {
                    partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
                } catch (ExecutionException error) {
                    if (!(error.getCause() instanceof UnknownTopicOrPartitionException)) {
                        throw error;
                    }
                }
            }
            Stream<String> brokers = admin.describeCluster().nodes().get().stream().map(node -> node.host() + ":" + node.port());
            boolean listed = admin.listTopics().names().get().contains(topic);
            int configs = admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().size();
            long offset = admin.listOffsets(Map.of(new TopicPartition(topic, 0), OffsetSpec.latest()))
                .partitionResult(new TopicPartition(topic, 0)).get().offset();
            Stream<String> groups = admin.listGroups().all().get().stream().map(group -> group.groupId());
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            Stream<String> controllers = quorum.nodes().values().stream()
                .flatMap(node -> node.endpoints().stream()).map(end -> end.host() + ":" + end.port());
            Collection<KafkaFuture<?>> others = List.of(
                admin.describeLogDirs(List.of(1)).allDescriptions(),
                admin.describeFeatures().featureMetadata(),
                admin.listTransactions().all(),
                admin.describeProducers(List.of(new TopicPartition(topic, 0))).all(),
                admin.describeClientQuotas(org.apache.kafka.common.quota.ClientQuotaFilter.all()).entities());
            for (KafkaFuture<?> other : others) {
                other.get();
            }
            admin.deleteTopics(List.of(topic)).all().get();
            return "\"partitions\": " + partitions + ", \"brokers\": " + strings(brokers) + ", \"topics\": " + listed
                + ", \"configs\": " + configs + ", \"offsets\": [" + offset + "], \"groups\": " + strings(groups)
                + ", \"leader\": " + quorum.leaderId() + ", \"controllers\": " + strings(controllers);
        }
    }

    /** The same bootstrap read as bootstrap.controllers: DescribeCluster of controllers (KIP-919). */
    private static String controllers(String bootstrap, Action action) throws Exception {
        Properties settings = Client.settings(bootstrap, action);
        settings.remove("bootstrap.servers");
        settings.put("bootstrap.controllers", bootstrap);
        try (Admin admin = Admin.create(settings)) {
            Stream<String> nodes = admin.describeCluster().nodes().get().stream().map(node -> node.host() + ":" + node.port());
            int leader = admin.describeMetadataQuorum().quorumInfo().get().leaderId();
            return "\"controllers\": " + strings(nodes) + ", \"leader\": " + leader;
        }
    }

    private static String strings(Stream<String> texts) {
        return texts.sorted().map(text -> '"' + text + '"').collect(Collectors.joining(", ", "[", "]"));
    }
}
