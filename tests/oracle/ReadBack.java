import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Messages that others wrote, as Kafka's own classes read them.
 *
 * Takes lines "key side version hex" on its standard input. Prints one JSON object for each: either values, and whether
 * Kafka writes what it read as the same bytes (with the unknown tagged fields and the records, which its JSON leaves out),
 * or an error.
 */
public final class ReadBack {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            try {
                read(line.split(" ", -1), answer);
            } catch (Exception error) {
                answer.put("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
            }
            out.append(answer).append('\n');
        }
        System.out.write(out.toString().getBytes("UTF-8"));
        System.out.flush();
    }

    private static void read(String[] words, ObjectNode answer) throws Exception {
        ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
        ApiMessage message = words[1].equals("request") ? api.newRequest() : api.newResponse();
        short version = Short.parseShort(words[2]);
        byte[] bytes = HexFormat.of().parseHex(words[3]);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes left over");
        }
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
        answer.set("values", (JsonNode) write.invoke(null, message, version, true));
        answer.put("same", Arrays.equals(bytes, written(message, version)));
    }

    private static byte[] written(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
