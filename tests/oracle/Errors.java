import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * How Kafka's own request classes refuse, and what its response classes report of a refusal.
 *
 * Takes lines "refuse key version code hex" (a request's body) or "report key version code hex" (a response's body) on its
 * standard input, and prints one JSON object for each. Of a request: hex, the body of the error answer, or null where Kafka
 * gives none. Of a response: counted, the codes in its errorCounts(); code, what this release takes the code for; values, the
 * whole of it as Kafka's JSON. Or else an error.
 */
public final class Errors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            String[] words = line.split(" ", -1);
            ApiKeys api = ApiKeys.forId(Short.parseShort(words[1]));
            short version = Short.parseShort(words[2]);
            short code = Short.parseShort(words[3]);
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[4]));
            try {
                if (words[0].equals("refuse")) {
                    refuse(api, version, code, body, answer);
                } else {
                    report(api, version, code, body, answer);
                }
            } catch (Exception error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                answer.put("error", String.valueOf(cause));
            }
            out.append(answer).append('\n');
        }
        System.out.write(out.toString().getBytes("UTF-8"));
        System.out.flush();
    }

    private static void refuse(ApiKeys api, short version, short code, ByteBuffer body, ObjectNode answer)
            throws Exception {
        Object parsed = parse(AbstractRequest.class, "parseRequest", api, version, body);
        Object request = parsed.getClass().getField("request").get(parsed);
        Throwable error = org.apache.kafka.common.protocol.Errors.forCode(code).exception();
        AbstractResponse response = ((AbstractRequest) request).getErrorResponse(0, error);
        answer.put("hex", response == null ? null : HexFormat.of().formatHex(written(response.data(), version)));
    }

    private static void report(ApiKeys api, short version, short code, ByteBuffer body, ObjectNode answer)
            throws Exception {
        ByteBuffer copy = body.duplicate();
        AbstractResponse response =
            (AbstractResponse) parse(AbstractResponse.class, "parseResponse", api, version, body);
        answer.put("code", org.apache.kafka.common.protocol.Errors.forCode(code).code());
        ArrayNode counted = answer.putArray("counted");
        response.errorCounts().keySet().forEach(error -> counted.add(error.code()));
        ApiMessage message = ApiMessageType.fromApiKey(api.id).newResponse();
        message.read(new ByteBufferAccessor(copy), version);
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
        answer.set("values", (JsonNode) write.invoke(null, message, version, true));
    }

    /** A static parser of (api, version, body) or (api, body, version), of a buffer or, since Kafka 4, of a Readable. */
    private static Object parse(Class<?> of, String name, ApiKeys api, short version, ByteBuffer body)
            throws Exception {
        for (Method method : of.getMethods()) {
            Class<?>[] takes = method.getParameterTypes();
            if (method.getName().equals(name) && takes.length == 3 && takes[0] == ApiKeys.class) {
                boolean last = takes[1] == short.class;
                Object from = takes[last ? 2 : 1] == ByteBuffer.class ? body : new ByteBufferAccessor(body);
                return last ? method.invoke(null, api, version, from) : method.invoke(null, api, from, version);
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static byte[] written(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
