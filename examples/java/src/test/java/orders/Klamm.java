package orders;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** klamm's admin API, as far as these tests need it. */
final class Klamm {
    /** The bootstrap server for clients of Kafka. */
    static final String BOOTSTRAP = setting("KLAMM", "127.0.0.1:19092");
    private static final String ADMIN = setting("KLAMM_ADMIN", "127.0.0.1:19091");
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    /** A rule that is in force until it is closed. */
    record Rule(String name) implements AutoCloseable {
        /** How often it has acted. */
        int hits() {
            Matcher found = Pattern.compile("\"hits\":(\\d+)").matcher(ask("GET", "/v1/rules/" + name, ""));
            if (!found.find()) {
                throw new IllegalStateException("no hits in the answer");
            }
            return Integer.parseInt(found.group(1));
        }

        @Override
        public void close() {
            ask("DELETE", "/v1/rules/" + name, "");
        }
    }

    /** Make a rule: `name` is new, `rest` is JSON without braces, as in a rule file. */
    static Rule rule(String name, String rest) {
        ask("POST", "/v1/rules", "{\"name\":\"" + name + "\",\"for\":\"1m\"," + rest + "}");
        return new Rule(name);
    }

    private static String ask(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + ADMIN + path))
                .header("Content-Type", "application/json")
                .method(method, BodyPublishers.ofString(body))
                .build();
        try {
            var answer = HTTP.send(request, BodyHandlers.ofString());
            if (answer.statusCode() >= 400) {
                throw new IllegalArgumentException(answer.body());
            }
            return answer.body();
        } catch (IOException | InterruptedException failure) {
            throw new IllegalStateException("klamm does not answer at " + ADMIN, failure);
        }
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }
}
