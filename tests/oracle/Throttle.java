import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Whether Kafka's clients heed the throttle time of a response.
 *
 * Takes lines "key version hex" (a response's body) on its standard input, and prints true or false for each, or unread where
 * this release has no such layout.
 */
public final class Throttle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            short key = Short.parseShort(words[0]);
            short version = Short.parseShort(words[1]);
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            String heeded;
            try {
                heeded = String.valueOf(parsed(ApiKeys.forId(key), version, body).shouldClientThrottle(version));
            } catch (Exception error) {
                heeded = "unread";
            }
            System.out.println(heeded);
        }
    }

    /** parseResponse takes a buffer, or, since Kafka 4, a Readable; the version comes before or after it. */
    private static AbstractResponse parsed(ApiKeys api, short version, ByteBuffer body) throws Exception {
        for (Method method : AbstractResponse.class.getMethods()) {
            Class<?>[] takes = method.getParameterTypes();
            if (method.getName().equals("parseResponse") && takes.length == 3 && takes[0] == ApiKeys.class) {
                boolean last = takes[1] == short.class;
                Object from = takes[last ? 2 : 1] == ByteBuffer.class ? body : new ByteBufferAccessor(body);
                return (AbstractResponse) (last ? method.invoke(null, api, version, from) : method.invoke(null, api, from, version));
            }
        }
        throw new NoSuchMethodException("parseResponse");
    }
}
