import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Records whose bytes follow from a seed, and digests of what was consumed: ../records.py in Java. */
final class Records {
    final byte[] key;
    final byte[] value;
    final Map<String, byte[]> headers = new LinkedHashMap<>();

    private Records(byte[] key, byte[] value) {
        this.key = key;
        this.value = value;
    }

    static Records at(String seed, int index, int size, boolean headers) {
        byte[] draw = sha256().digest((seed + "/" + index).getBytes(StandardCharsets.UTF_8));
        byte[] key = at(draw, 0) < 32 ? null : Arrays.copyOf(draw, at(draw, 1) % 16);
        int repeats = size == 0 ? at(draw, 2) % 8 : (size + draw.length - 1) / draw.length;
        byte[] value = null;
        if (size > 0 || key == null || at(draw, 3) >= 16) {
            value = new byte[draw.length * repeats];
            for (int offset = 0; offset < value.length; offset += draw.length) {
                System.arraycopy(draw, 0, value, offset, draw.length);
            }
        }
        Records record = new Records(key, value);
        for (int number = 0; headers && number < at(draw, 4) % 3; number++) {
            record.headers.put("name-" + number, Arrays.copyOfRange(draw, 6, 6 + at(draw, 5) % 8));
        }
        return record;
    }

    static String fingerprint(String topic, byte[] key, byte[] value, Collection<Map.Entry<String, byte[]>> headers) {
        MessageDigest hashed = sha256();
        update(hashed, topic.getBytes(StandardCharsets.UTF_8));
        update(hashed, key);
        update(hashed, value);
        for (Map.Entry<String, byte[]> header : headers) {
            update(hashed, header.getKey().getBytes(StandardCharsets.UTF_8));
            update(hashed, header.getValue());
        }
        return hex(hashed.digest()).substring(0, 32);
    }

    static String digest(Collection<String> fingerprints) {
        List<String> sorted = new ArrayList<>(fingerprints);
        sorted.sort(null);
        return hex(sha256().digest(String.join("\n", sorted).getBytes(StandardCharsets.US_ASCII)));
    }

    /** The members of a result line: count, digest, and the fingerprints where the action asks to list them. */
    static String result(Action action, List<String> fingerprints) {
        String line = "\"count\": " + fingerprints.size() + ", \"digest\": \"" + digest(fingerprints) + "\"";
        return action.flag("list", false)
            ? line + ", \"fingerprints\": [\"" + String.join("\", \"", fingerprints) + "\"]" : line;
    }

    static boolean enough(Action action, List<String> fingerprints) {
        int count = action.flag("unique", false) ? new HashSet<>(fingerprints).size() : fingerprints.size();
        return count >= action.number("count", 0);
    }

    private static int at(byte[] draw, int index) {
        return draw[index] & 255;
    }

    private static void update(MessageDigest hashed, byte[] part) {
        if (part == null) {
            hashed.update("null;".getBytes(StandardCharsets.US_ASCII));
        } else {
            hashed.update((part.length + ":").getBytes(StandardCharsets.US_ASCII));
            hashed.update(part);
            hashed.update((byte) ';');
        }
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }
}
