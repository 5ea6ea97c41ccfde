import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.Errors;

/** One line on standard output: what ../../../drivers.py lists. */
final class Event {
    private final Map<String, Object> members = new LinkedHashMap<>();
    private final long startedNs;

    private Event(String name, long startedNs) {
        this.startedNs = startedNs;
        with("event", name);
    }

    static Event named(String name) {
        return since(System.nanoTime(), name);
    }

    /** An event of a call that began at `startedNs`, for withMs(). */
    static Event since(long startedNs, String name) {
        return new Event(name, startedNs);
    }

    /** An error event of the call `where`, with the name that Kafka gives the error. */
    static Event error(long startedNs, String where, Throwable thrown) {
        Throwable error = cause(thrown);
        return since(startedNs, "error").with("where", where).with("error", name(error)).with("message", error.getMessage())
            .with("retriable", error instanceof RetriableException).with("fatal", isFatal(error)).withMs();
    }

    Event with(String name, Object value) {
        members.put(name, value);
        return this;
    }

    Event withMs() {
        return with("ms", (System.nanoTime() - startedNs) / 1_000_000);
    }

    /** Print the event. A thread that interrupts (the watchdog, a rebalance listener) cannot split a line. */
    void say() {
        synchronized (System.out) {
            System.out.println(json(members));
            System.out.flush();
        }
    }

    static Throwable cause(Throwable thrown) {
        boolean wrapped = thrown instanceof ExecutionException || thrown instanceof CompletionException;
        return wrapped && thrown.getCause() != null ? cause(thrown.getCause()) : thrown;
    }

    /** Kafka's own name; the class's where Kafka has none, as for what a client finds out by itself. */
    private static String name(Throwable error) {
        Errors named = Errors.forException(error);
        return named == Errors.UNKNOWN_SERVER_ERROR ? error.getClass().getSimpleName() : named.name();
    }

    /** Errors after which Kafka's documents say that a client is to be closed. */
    private static boolean isFatal(Throwable error) {
        return error instanceof ProducerFencedException || error instanceof FencedInstanceIdException
            || error instanceof UnsupportedVersionException || error instanceof AuthenticationException
            || (error instanceof AuthorizationException
                && !(error instanceof TopicAuthorizationException) && !(error instanceof GroupAuthorizationException));
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(each -> json(each.getKey()) + ": " + json(each.getValue()))
                .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof Iterable<?> values) {
            StringBuilder text = new StringBuilder();
            values.forEach(each -> text.append(text.isEmpty() ? "" : ", ").append(json(each)));
            return "[" + text + "]";
        }
        return value instanceof String text ? quoted(text) : String.valueOf(value);
    }

    private static String quoted(String text) {
        return text.chars().mapToObj(each -> each < ' ' || each == '"' || each == '\\'
            ? String.format("\\u%04x", each) : Character.toString(each)).collect(Collectors.joining("", "\"", "\""));
    }
}
