import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Random messages of every layout that this Kafka knows, written by Kafka's own classes.
 *
 * Arguments: a seed, and how many messages per layout; the first of each holds nothing but defaults.
 * Prints one JSON object per line: name, key, side ("request", "response" or "header"), version, the version of the header
 * before it, hex, and values as they went in.
 */
public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final String[] TEXTS = {"", "a", "orders", "Grüße", "主题", "🦓", "\u0000", "a\"b\\c\n"};

    public static void main(String[] arguments) throws Exception {
        long seed = Long.parseLong(arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        StringBuilder out = new StringBuilder();
        for (JsonNode schema : schemas()) {
            for (int version : versions(schema.get("validVersions").asText())) {
                for (int index = 0; index < count; index++) {
                    String name = schema.get("name").asText();
                    Random random = new Random(seed + 31L * name.hashCode() + 7L * version + index);
                    out.append(new Oracle(schema, version, random).line(index == 0)).append('\n');
                }
            }
        }
        System.out.write(out.toString().getBytes("UTF-8"));
        System.out.flush();
    }

    /** The schemas in the jar that holds Kafka's message classes, in order of their names. */
    private static List<JsonNode> schemas() throws Exception {
        File jar = new File(Message.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        TreeMap<String, JsonNode> found = new TreeMap<>();
        try (JarFile file = new JarFile(jar)) {
            for (JarEntry entry : file.stream().toList()) {
                if (entry.getName().startsWith("common/message/") && entry.getName().endsWith(".json")) {
                    try (InputStream text = file.getInputStream(entry)) {
                        JsonNode schema = JSON.readTree(text);
                        String type = schema.get("type").asText();
                        if (List.of("request", "response", "header").contains(type)) {
                            found.put(schema.get("name").asText(), schema);
                        }
                    }
                }
            }
        }
        return new ArrayList<>(found.values());
    }

    static List<Integer> versions(String range) {
        List<Integer> all = new ArrayList<>();
        for (int version = 0; version < 100; version++) {
            if (within(range, version) && !range.endsWith("+")) {
                all.add(version);
            }
        }
        return all;
    }

    private static boolean within(String range, int version) {
        if (range.equals("none")) {
            return false;
        }
        String[] ends = range.replace("+", "-32767").split("-");
        return version >= Integer.parseInt(ends[0]) && version <= Integer.parseInt(ends[ends.length - 1]);
    }

    private final JsonNode schema;
    private final int version;
    private final Random random;

    Oracle(JsonNode schema, int version, Random random) {
        this.schema = schema;
        this.version = version;
        this.random = random;
    }

    private String line(boolean defaults) throws Exception {
        String name = schema.get("name").asText();
        Class<?> data = Class.forName("org.apache.kafka.common.message." + name + "Data");
        ObjectNode values = defaults ? NODES.objectNode() : struct(schema.path("fields"));
        Message message;
        if (defaults) {
            message = (Message) data.getConstructor().newInstance();
        } else {
            Method read = Class.forName(data.getName() + "JsonConverter").getMethod("read", JsonNode.class, short.class);
            message = (Message) read.invoke(null, values, (short) version);
        }
        ObjectNode line = NODES.objectNode();
        line.put("name", name).put("key", schema.path("apiKey").asInt(-1)).put("side", schema.get("type").asText());
        line.put("version", version).put("header", header());
        line.put("hex", HexFormat.of().formatHex(written(message))).set("values", values);
        return line.toString();
    }

    /** The version of the header that precedes this message; of a header, its own. */
    private short header() {
        String type = schema.get("type").asText();
        if (type.equals("header")) {
            return (short) version;
        }
        ApiMessageType api = ApiMessageType.fromApiKey((short) schema.get("apiKey").asInt());
        boolean request = type.equals("request");
        return request ? api.requestHeaderVersion((short) version) : api.responseHeaderVersion((short) version);
    }

    byte[] written(Message message) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, (short) version));
        message.write(new ByteBufferAccessor(buffer), cache, (short) version);
        return buffer.array();
    }

    boolean in(JsonNode field, String ranges) {
        return within(field.path(ranges).asText("none"), version);
    }

    ObjectNode struct(JsonNode fields) {
        ObjectNode values = NODES.objectNode();
        for (JsonNode field : fields) {
            boolean left = in(field, "taggedVersions") && random.nextBoolean();
            if (in(field, field.has("versions") ? "versions" : "taggedVersions") && !left) {
                String name = field.get("name").asText();
                values.set(Character.toLowerCase(name.charAt(0)) + name.substring(1), value(field));
            }
        }
        return values;
    }

    private JsonNode value(JsonNode field) {
        if (in(field, "nullableVersions") && random.nextInt(4) == 0) {
            return NullNode.instance;
        }
        String type = field.get("type").asText();
        if (!type.startsWith("[]")) {
            return element(type, field);
        }
        ArrayNode array = NODES.arrayNode();
        String kind = type.substring(2);
        boolean small = Character.isLowerCase(kind.charAt(0));
        int size = small && random.nextInt(12) == 0 ? 120 + random.nextInt(20) : random.nextInt(4);
        for (int index = 0; index < size; index++) {
            array.add(element(kind, field));
        }
        return array;
    }

    private JsonNode element(String type, JsonNode field) {
        switch (type) {
            case "bool": return NODES.booleanNode(random.nextBoolean());
            case "int8": return NODES.numberNode((byte) integer(8));
            case "int16": return NODES.numberNode((short) integer(16));
            case "uint16": return NODES.numberNode((int) integer(16) & 0xffff);
            case "int32": return NODES.numberNode((int) integer(32));
            case "uint32": return NODES.numberNode(integer(32) & 0xffffffffL);
            case "int64": return NODES.numberNode(integer(64));
            case "float64": return NODES.numberNode(random.nextInt(4) == 0 ? 0.0 : random.nextGaussian() * 1e9);
            case "uuid": return NODES.textNode(new Uuid(integer(64), integer(64)).toString());
            case "string": return NODES.textNode(text());
            case "bytes": case "records": return bytes();
            default: return struct(members(type, field));
        }
    }

    /** An integer of so many bits: often a special one. */
    long integer(int bits) {
        long[] special = {0, 1, -1, 127, 128, 1L << (bits - 1), (1L << (bits - 1)) - 1};
        return random.nextInt(3) == 0 ? special[random.nextInt(special.length)] : random.nextLong() >> (64 - bits);
    }

    String text() {
        String text = TEXTS[random.nextInt(TEXTS.length)];
        return random.nextInt(8) == 0 ? text.repeat(1 + random.nextInt(60)) : text;
    }

    BinaryNode bytes() {
        byte[] bytes = new byte[random.nextInt(8) == 0 ? random.nextInt(300) : random.nextInt(6)];
        random.nextBytes(bytes);
        return BinaryNode.valueOf(bytes);
    }

    JsonNode members(String type, JsonNode field) {
        if (field.has("fields")) {
            return field.get("fields");
        }
        for (JsonNode common : schema.path("commonStructs")) {
            if (common.get("name").asText().equals(type)) {
                return common.get("fields");
            }
        }
        throw new IllegalStateException("no struct " + type + " in " + schema.get("name").asText());
    }
}
