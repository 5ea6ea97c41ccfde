import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One action of the command line: a flat JSON object, as ../actions.py describes it. */
final class Action {
    private static final Pattern MEMBER = Pattern.compile("\"(\\w+)\"\\s*:\\s*(?:\"([^\"]*)\"|([^,}\\s]+))");
    private final Map<String, String> members = new LinkedHashMap<>();

    Action(String json) {
        Matcher matcher = MEMBER.matcher(json);
        while (matcher.find()) {
            members.put(matcher.group(1), matcher.group(2) != null ? matcher.group(2) : matcher.group(3));
        }
    }

    String text(String name, String otherwise) {
        String value = members.get(name);
        return value == null || value.equals("null") ? otherwise : value;
    }

    String text(String name) {
        String value = text(name, null);
        if (value == null) {
            throw new IllegalArgumentException("the action lacks \"" + name + "\"");
        }
        return value;
    }

    int number(String name, int otherwise) {
        return (int) Double.parseDouble(text(name, Integer.toString(otherwise)));
    }

    boolean flag(String name, boolean otherwise) {
        return Boolean.parseBoolean(text(name, Boolean.toString(otherwise)));
    }

    int timeoutMs() {
        return 1000 * number("timeout_s", 40);
    }
}
