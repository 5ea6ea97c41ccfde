import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Random payloads that Kafka's own classes wrote, of every version, and the names of all schemas in Kafka's jars.
 *
 * Arguments: a seed, and how many per version; the first of each schema's holds nothing but defaults.
 * Prints one JSON object per line: {schema, file}, or {name, version, hex, values}, with a lead where a version or
 * a record's type stands before what the schema tells, or {control, key, value, name, values}, or {newer, values}.
 */
public final class Payloads {
    private static final StringBuilder OUT = new StringBuilder();
    private static final String[] TOPICS = {"orders", "payments", "Grüße", "a"};

    public static void main(String[] arguments) throws Exception {
        long seed = Long.parseLong(arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        Map<String, String> classes = new TreeMap<>();
        for (JsonNode schema : schemas(classes)) {
            String type = classes.get(schema.get("name").asText());
            if (type != null) {
                for (int version : Oracle.versions(schema.get("validVersions").asText())) {
                    for (int index = 0; index < count; index++) {
                        Random random = new Random(seed + 31L * type.hashCode() + 7L * version + index);
                        generated(schema, Class.forName(type), version, index == 0, new Oracle(schema, version, random));
                    }
                }
            }
        }
        for (int index = 0; index < count; index++) {
            new Payloads(seed + index).written();
        }
        System.out.write(OUT.toString().getBytes("UTF-8"));
        System.out.flush();
    }

    /** All schemas but those of APIs, and by name the classes made from those under common/message. */
    private static Collection<JsonNode> schemas(Map<String, String> classes) throws Exception {
        TreeMap<String, JsonNode> found = new TreeMap<>();
        TreeMap<String, String> files = new TreeMap<>();
        Set<String> all = new LinkedHashSet<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().matches("(kafka|connect).*\\.jar")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                for (JarEntry entry : jar.stream().toList()) {
                    all.add(entry.getName());
                    if (entry.getName().endsWith(".json")) {
                        try (InputStream text = jar.getInputStream(entry)) {
                            JsonNode schema = Oracle.JSON.readTree(text);
                            if (schema.has("validVersions") && !isOfApi(schema)) {
                                found.put(schema.get("name").asText(), schema);
                                files.put(schema.get("name").asText(), entry.getName());
                            }
                        }
                    }
                }
            }
        }
        for (String entry : all) {
            String name = entry.substring(entry.lastIndexOf('/') + 1).replace(".class", "");
            boolean generated = entry.contains("/generated/") || entry.startsWith("org/apache/kafka/common/message/");
            if (generated && files.getOrDefault(name, "").startsWith("common/message/")) {
                classes.put(name, entry.replace(".class", "").replace('/', '.'));
            }
        }
        files.forEach((name, file) -> OUT.append(Oracle.NODES.objectNode().put("schema", name).put("file", file)).append('\n'));
        return found.values();
    }

    private static boolean isOfApi(JsonNode schema) {
        return List.of("request", "response", "header").contains(schema.get("type").asText());
    }

    private static void generated(JsonNode schema, Class<?> type, int version, boolean defaults, Oracle oracle)
            throws Exception {
        JsonNode first = schema.get("fields").get(0);
        boolean isKey = schema.get("type").asText().equals("coordinator-key");
        boolean itself = first.get("name").asText().equalsIgnoreCase("version");
        ObjectNode values = defaults ? Oracle.NODES.objectNode() : oracle.struct(schema.get("fields"));
        if (itself) {
            values.put("version", version);
        }
        Message message = (Message) (defaults || type.getName().contains("streams") ? filled(type, values)
            : Class.forName(type.getName() + "JsonConverter").getMethod("read", JsonNode.class, short.class)
                .invoke(null, values, (short) version));
        ByteBuffer data = isKey ? MessageUtil.toCoordinatorTypePrefixedByteBuffer((ApiMessage) message)
            : itself ? ByteBuffer.wrap(oracle.written(message))
            : MessageUtil.toVersionPrefixedByteBuffer((short) version, message);
        ObjectNode line = line(schema.get("name").asText(), version, data, held(message, schema.get("fields"), oracle));
        if (!itself) {
            line.put("lead", isKey ? schema.get("apiKey").asInt() : version);
        }
        OUT.append(line).append('\n');
    }

    /** The fields of the message, its defaults included. */
    private static ObjectNode held(Object message, JsonNode fields, Oracle oracle) throws Exception {
        ObjectNode values = Oracle.NODES.objectNode();
        for (JsonNode field : fields) {
            if (oracle.in(field, field.has("versions") ? "versions" : "taggedVersions")) {
                String name = field.get("name").asText();
                name = name.substring(0, 1).toLowerCase() + name.substring(1);
                values.set(name, json(message.getClass().getMethod(name).invoke(message), field, oracle));
            }
        }
        return values;
    }

    private static JsonNode json(Object value, JsonNode field, Oracle oracle) throws Exception {
        String type = field.get("type").asText().replace("[]", "");
        if (value instanceof Collection<?> all) {
            ArrayNode array = Oracle.NODES.arrayNode();
            for (Object each : all) {
                array.add(json(each, field, oracle));
            }
            return array;
        }
        if (value != null && Character.isUpperCase(type.charAt(0))) {
            return held(value, oracle.members(type, field), oracle);
        }
        if (value instanceof ByteBuffer buffer) {
            return Oracle.NODES.binaryNode(MessageUtil.byteBufferToArray(buffer.duplicate()));
        }
        return Oracle.JSON.valueToTree(value instanceof Uuid ? value.toString() : value);
    }

    /** A message with these values; Streams has no converter from JSON, and the others want every field. */
    private static Object filled(Type type, JsonNode value) throws Exception {
        if (value.isNull()) {
            return null;
        }
        if (type instanceof ParameterizedType list) {
            List<Object> all = new ArrayList<>();
            for (JsonNode each : value) {
                all.add(filled(list.getActualTypeArguments()[0], each));
            }
            return all;
        }
        Map<Type, Object> plain = Map.of(byte.class, (byte) value.asInt(), short.class, (short) value.asInt(),
            int.class, value.asInt(), long.class, value.asLong(), String.class, value.asText());
        if (plain.containsKey(type)) {
            return plain.get(type);
        }
        if (type == Uuid.class || type == byte[].class) {
            return type == Uuid.class ? Uuid.fromString(value.asText()) : value.binaryValue();
        }
        Object made = ((Class<?>) type).getConstructor().newInstance();
        for (Method set : ((Class<?>) type).getMethods()) {
            String name = set.getName();
            if (name.startsWith("set") && value.has(name.substring(3, 4).toLowerCase() + name.substring(4))) {
                JsonNode given = value.get(name.substring(3, 4).toLowerCase() + name.substring(4));
                set.invoke(made, filled(set.getGenericParameterTypes()[0], given));
            }
        }
        return made;
    }

    private static ObjectNode line(String name, int version, ByteBuffer data, ObjectNode values) {
        ObjectNode line = Oracle.NODES.objectNode().put("name", name).put("version", version).put("hex", hex(data));
        line.set("values", values);
        return line;
    }

    private static String hex(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private final Random random;
    private final Oracle oracle;

    private Payloads(long seed) {
        random = new Random(seed);
        oracle = new Oracle(Oracle.NODES.objectNode(), 0, random);
    }

    /** Payloads without a schema, or with more bytes than their schema. */
    private void written() throws Exception {
        connect();
        sticky();
        for (int version = 1; version <= 11; version++) {
            assignmentInfo(version);
        }
        control();
        newer();
    }

    private ObjectNode lead(int version) {
        return Oracle.NODES.objectNode().put("version", version);
    }

    private void connect() {
        String url = oracle.text();
        long offset = oracle.integer(64);
        print("ConnectSubscription", 0, ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(url, offset)),
            lead(0).put("url", url).put("configOffset", offset));
        List<String> connectors = strings(), revokedConnectors = strings();
        List<ConnectorTaskId> tasks = tasks(), revokedTasks = tasks();
        short error = (short) random.nextInt(2);
        String leader = oracle.text();
        ByteBuffer eager = ConnectProtocol.serializeAssignment(
            new ConnectProtocol.Assignment(error, leader, url, offset, connectors, tasks));
        print("ConnectAssignment", 0, eager, assignment(0, error, leader, url, offset, connectors, tasks));
        for (short version = 1; version <= 2; version++) {
            int delay = (int) oracle.integer(32);
            ExtendedAssignment full = new ExtendedAssignment(
                version, error, leader, url, offset, connectors, tasks, revokedConnectors, revokedTasks, delay);
            ByteBuffer data = IncrementalCooperativeConnectProtocol.serializeAssignment(full, version == 2);
            ObjectNode values = assignment(version, error, leader, url, offset, connectors, tasks);
            values.set("revoked", byConnector(revokedConnectors, revokedTasks));
            print("ConnectAssignment", version, data, values.put("delay", delay));
            boolean none = random.nextInt(3) == 0;
            ExtendedWorkerState state = new ExtendedWorkerState(url, offset, none ? null : full);
            ObjectNode subscription = lead(version).put("url", url).put("configOffset", offset);
            if (none) {
                subscription.putNull("allocation");
            } else {
                subscription.put("allocation", data.array());
            }
            print("ConnectSubscription", version,
                IncrementalCooperativeConnectProtocol.serializeMetadata(state, version == 2), subscription);
            nulls(version);
        }
    }

    /** An assignment in which null stands for no change. */
    private void nulls(short version) {
        Struct body = new Struct(IncrementalCooperativeConnectProtocol.ASSIGNMENT_V1);
        body.set("error", (short) 0).set("leader", "").set("leader-url", "").set("config-offset", 1L);
        body.set("assignment", null).set("revoked", null).set(IncrementalCooperativeConnectProtocol.SCHEDULED_DELAY_KEY_NAME, 5);
        ByteBuffer data = ByteBuffer.allocate(2 + body.sizeOf()).putShort(version);
        body.writeTo(data);
        ObjectNode values = lead(version).put("error", 0).put("leader", "").put("leaderUrl", "").put("configOffset", 1);
        values.putNull("assignment").putNull("revoked").put("delay", 5);
        print("ConnectAssignment", version, data.flip(), values);
    }

    private ObjectNode assignment(int version, short error, String leader, String url, long offset,
            List<String> connectors, List<ConnectorTaskId> tasks) {
        ObjectNode values = lead(version).put("error", error).put("leader", leader).put("leaderUrl", url);
        values.put("configOffset", offset).set("assignment", byConnector(connectors, tasks));
        return values;
    }

    private static ArrayNode byConnector(List<String> connectors, List<ConnectorTaskId> tasks) {
        Map<String, ArrayNode> found = new LinkedHashMap<>();
        for (String connector : connectors) {
            found.computeIfAbsent(connector, name -> Oracle.NODES.arrayNode()).add(ConnectProtocol.CONNECTOR_TASK);
        }
        for (ConnectorTaskId task : tasks) {
            found.computeIfAbsent(task.connector(), name -> Oracle.NODES.arrayNode()).add(task.task());
        }
        ArrayNode all = Oracle.NODES.arrayNode();
        found.forEach((connector, ids) -> all.addObject().put("connector", connector).set("tasks", ids));
        return all;
    }

    private void sticky() throws Exception {
        Map<String, List<Integer>> byTopic = new LinkedHashMap<>();
        List<TopicPartition> partitions = new ArrayList<>(partitions());
        int generation = (int) oracle.integer(32);
        Method write = StickyAssignor.class.getDeclaredMethod("serializeTopicPartitionAssignment", MemberData.class);
        write.setAccessible(true);
        ByteBuffer data = (ByteBuffer) write.invoke(null, new MemberData(partitions, Optional.of(generation)));
        Struct newest = (Struct) schema("STICKY_ASSIGNOR_USER_DATA_V1").read(data.duplicate());
        Struct oldest = new Struct(schema("STICKY_ASSIGNOR_USER_DATA_V0"));
        ArrayNode previous = Oracle.NODES.arrayNode();
        List<Object> topics = new ArrayList<>();
        for (Object each : newest.getArray("previous_assignment")) {
            Struct topic = (Struct) each;
            ArrayNode ids = previous.addObject().put("topic", topic.getString("topic")).putArray("partitions");
            for (Object id : topic.getArray("partitions")) {
                ids.add((Integer) id);
            }
            topics.add(topic);
        }
        oldest.set("previous_assignment", topics.toArray());
        ByteBuffer old = ByteBuffer.allocate(oldest.sizeOf());
        oldest.writeTo(old);
        ObjectNode values = Oracle.NODES.objectNode();
        values.set("previousAssignment", previous);
        print("StickyAssignorUserData", 0, old.flip(), values);
        print("StickyAssignorUserData", 1, data, values.deepCopy().put("generation", generation));
        CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
        cooperative.onAssignment(new Assignment(partitions), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        print("CooperativeStickyAssignorUserData", 0, cooperative.subscriptionUserData(Set.of()),
            Oracle.NODES.objectNode().put("generation", generation));
    }

    private static Schema schema(String name) throws Exception {
        Field field = StickyAssignor.class.getDeclaredField(name);
        field.setAccessible(true);
        return (Schema) field.get(null);
    }

    /** Its values have topics by name where the bytes refer to a list of topics. */
    private void assignmentInfo(int version) {
        List<TaskId> active = taskIds(version);
        Map<TaskId, Set<TopicPartition>> standby = new LinkedHashMap<>();
        taskIds(version).forEach(task -> standby.put(task, partitions()));
        Map<HostInfo, Set<TopicPartition>> hosts = hosts(), standbyHosts = hosts();
        int supported = version < 3 ? -1 : 11, error = version < 4 ? 0 : random.nextInt(4);
        AssignmentInfo info = new AssignmentInfo(version, supported, active, standby, hosts, standbyHosts, error);
        long next = oracle.integer(64);
        info.setNextRebalanceTime(next);
        ObjectNode values = lead(version);
        if (version >= 3) {
            values.put("commonlySupportedVersion", supported);
        }
        ArrayNode tasks = values.putArray("activeTasks");
        active.forEach(task -> tasks.add(task(task, version)));
        ArrayNode standbys = values.putArray("standbyTasks");
        standby.forEach((task, partitions) -> standbys.add(task(task, version).set("partitions", each(partitions))));
        if (version >= 2) {
            values.set("partitionsByHost", each(hosts));
        }
        if (version >= 6) {
            values.set("standbyPartitionsByHost", each(standbyHosts));
        }
        if (version >= 4) {
            values.put("errorCode", error);
        }
        if (version >= 7) {
            values.put("nextRebalanceMs", next);
        }
        print("AssignmentInfo", version, info.encode(), values);
    }

    private static ObjectNode task(TaskId id, int version) {
        ObjectNode task = Oracle.NODES.objectNode().put("topicGroupId", id.subtopology()).put("partition", id.partition());
        if (version >= 10) {
            ArrayNode name = task.putArray("namedTopology");
            (id.topologyName() == null ? "" : id.topologyName()).chars().forEach(name::add);
        }
        return task;
    }

    private static ArrayNode each(Map<HostInfo, Set<TopicPartition>> hosts) {
        ArrayNode all = Oracle.NODES.arrayNode();
        hosts.forEach((host, partitions) ->
            all.addObject().put("host", host.host()).put("port", host.port()).set("partitions", each(partitions)));
        return all;
    }

    private static ArrayNode each(Set<TopicPartition> partitions) {
        ArrayNode all = Oracle.NODES.arrayNode();
        partitions.forEach(each -> all.addObject().put("topic", each.topic()).put("partition", each.partition()));
        return all;
    }

    private List<String> strings() {
        List<String> all = new ArrayList<>();
        for (int left = random.nextInt(3); left > 0; left--) {
            all.add("connector-" + all.size());
        }
        return all;
    }

    private List<ConnectorTaskId> tasks() {
        List<ConnectorTaskId> all = new ArrayList<>();
        for (int left = random.nextInt(5); left > 0; left--) {
            all.add(new ConnectorTaskId("connector-" + random.nextInt(3), left));
        }
        return all;
    }

    private List<TaskId> taskIds(int version) {
        Set<TaskId> all = new LinkedHashSet<>();
        for (int left = random.nextInt(4); left > 0; left--) {
            String name = version >= 10 && random.nextBoolean() ? "topologie-ü" : null;
            all.add(new TaskId(random.nextInt(9), random.nextInt(9), name));
        }
        return new ArrayList<>(all);
    }

    private Set<TopicPartition> partitions() {
        Set<TopicPartition> all = new LinkedHashSet<>();
        for (int left = random.nextInt(5); left > 0; left--) {
            all.add(new TopicPartition(TOPICS[random.nextInt(TOPICS.length)], random.nextInt(100)));
        }
        return all;
    }

    private Map<HostInfo, Set<TopicPartition>> hosts() {
        Map<HostInfo, Set<TopicPartition>> all = new LinkedHashMap<>();
        for (int left = random.nextInt(3); left > 0; left--) {
            all.put(new HostInfo("host-" + left, random.nextInt(65536)), partitions());
        }
        return all;
    }

    /** The records of control batches, key and value, as they stand in the log. */
    private void control() {
        int epoch = random.nextInt(100);
        for (ControlRecordType end : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            control(end, MemoryRecords.withEndTransactionMarker(5L, (short) 1, new EndTransactionMarker(end, epoch)),
                "EndTxnMarker", lead(0).put("coordinatorEpoch", epoch));
        }
        LeaderChangeMessage leader = new LeaderChangeMessage().setLeaderId(epoch);
        leader.voters().add(new LeaderChangeMessage.Voter().setVoterId(3));
        ObjectNode values = lead(0).put("leaderId", epoch);
        values.putArray("voters").addObject().put("voterId", 3);
        control(ControlRecordType.LEADER_CHANGE, MemoryRecords.withLeaderChangeMessage(0, 0, 1, room(), leader),
            "LeaderChangeMessage", values);
        control(ControlRecordType.SNAPSHOT_HEADER, MemoryRecords.withSnapshotHeaderRecord(0, 0, 1, room(),
            new SnapshotHeaderRecord().setLastContainedLogTimestamp(epoch)),
            "SnapshotHeaderRecord", lead(0).put("lastContainedLogTimestamp", epoch));
        control(ControlRecordType.SNAPSHOT_FOOTER,
            MemoryRecords.withSnapshotFooterRecord(0, 0, 1, room(), new SnapshotFooterRecord()),
            "SnapshotFooterRecord", lead(0));
        control(ControlRecordType.KRAFT_VERSION, MemoryRecords.withKRaftVersionRecord(0, 0, 1, room(),
            new KRaftVersionRecord().setKRaftVersion((short) 1)), "KRaftVersionRecord", lead(0).put("kRaftVersion", 1));
        VotersRecord voters = new VotersRecord();
        voters.voters().add(new VotersRecord.Voter().setVoterId(epoch).setVoterDirectoryId(Uuid.ONE_UUID));
        values = lead(0);
        values.putArray("voters").addObject().put("voterId", epoch).put("voterDirectoryId", Uuid.ONE_UUID.toString());
        control(ControlRecordType.KRAFT_VOTERS, MemoryRecords.withVotersRecord(0, 0, 1, room(), voters),
            "VotersRecord", values);
    }

    private static ByteBuffer room() {
        return ByteBuffer.allocate(512);
    }

    private static void control(ControlRecordType type, MemoryRecords batch, String name, ObjectNode values) {
        Record record = batch.records().iterator().next();
        ObjectNode line = Oracle.NODES.objectNode().put("control", type.type()).put("type", type.name()).put("name", name);
        line.put("key", hex(record.key())).put("value", hex(record.value())).set("values", values);
        OUT.append(line).append('\n');
    }

    /** A subscription of a version to come, and what Kafka reads of it. */
    private void newer() {
        ConsumerProtocolSubscription known = new ConsumerProtocolSubscription().setTopics(List.of(TOPICS)).setRackId("r");
        byte[] body = hexToBytes(hex(MessageUtil.toVersionPrefixedByteBuffer((short) 3, known)));
        int version = 4 + random.nextInt(30000);
        ByteBuffer data = ByteBuffer.allocate(body.length + 3).put(body).put(new byte[] {1, 2, 3});
        data.putShort(0, (short) version).flip();
        ConsumerProtocolSubscription read = ConsumerProtocol.deserializeConsumerProtocolSubscription(data.duplicate());
        ObjectNode values = lead(version).put("rackId", read.rackId()).put("generationId", read.generationId());
        read.topics().forEach(values.putArray("topics")::add);
        OUT.append(Oracle.NODES.objectNode().put("newer", hex(data)).set("values", values).toString()).append('\n');
    }

    private static byte[] hexToBytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    private static void print(String name, int version, ByteBuffer data, ObjectNode values) {
        OUT.append(line(name, version, data, values)).append('\n');
    }
}
