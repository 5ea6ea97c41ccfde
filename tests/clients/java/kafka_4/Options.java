import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** The key=value words of a command line, and the settings of all clients that follow from them. */
final class Options {
    private final Map<String, String> values = new HashMap<>();
    private final long startedMs = System.currentTimeMillis();
    final String bootstrap;
    final String topic;

    Options(String bootstrap, String topic, Iterable<String> words) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        for (String word : words) {
            String[] halves = word.split("=", 2);
            values.put(halves[0], halves[1]);
        }
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(text(name, Integer.toString(otherwise)));
    }

    int timeoutMs() {
        return number("timeout_ms", 20_000);
    }

    /** How long the client is given; the rest of timeout_ms is for aborting, committing and closing. */
    int patienceMs() {
        return timeoutMs() * 3 / 4;
    }

    boolean isLate() {
        return System.currentTimeMillis() - startedMs >= patienceMs();
    }

    /** Settings that show a reaction within seconds. */
    Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java-reactions");
        settings.put("request.timeout.ms", Math.min(5_000, patienceMs()));
        settings.put("default.api.timeout.ms", patienceMs());
        settings.put("retry.backoff.ms", 50);
        settings.put("retry.backoff.max.ms", 100);
        settings.put("reconnect.backoff.ms", 50);
        settings.put("reconnect.backoff.max.ms", 100);
        if (values.containsKey("username")) {
            settings.put("security.protocol", "SASL_PLAINTEXT");
            settings.put("sasl.mechanism", "PLAIN");
            settings.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
                + text("username", "") + "\" password=\"" + text("password", "") + "\";");
        }
        return settings;
    }

    Properties producerSettings() {
        Properties settings = settings();
        settings.remove("default.api.timeout.ms");
        settings.put("linger.ms", 0);
        settings.put("delivery.timeout.ms", patienceMs());
        settings.put("max.block.ms", patienceMs());
        settings.put("acks", text("acks", "all"));
        settings.put("enable.idempotence", text("idempotent", "false"));
        return settings;
    }
}
