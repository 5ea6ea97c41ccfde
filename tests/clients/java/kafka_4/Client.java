import java.util.Properties;

/** The Java clients of Kafka 4.3 as a client program; ../../actions.py says how it is called. */
final class Client {
    public static void main(String[] arguments) {
        for (int index = 1; index < arguments.length; index++) {
            Action action = new Action(arguments[index]);
            String name = action.text("do");
            long started = System.nanoTime();
            try {
                String result = switch (name) {
                    case "produce" -> Produce.run(arguments[0], action);
                    case "consume" -> Consume.run(arguments[0], action);
                    case "share" -> Share.run(arguments[0], action);
                    case "administrate" -> Administrate.run(arguments[0], action);
                    default -> throw new IllegalArgumentException("unknown action " + name);
                };
                double took = (System.nanoTime() - started) / 1e9;
                System.out.printf("{\"do\": \"%s\", %s, \"took_s\": %.2f}%n", name, result, took);
            } catch (Exception error) {
                error.printStackTrace();
                System.out.printf("{\"do\": \"%s\", \"error\": \"%s\"}%n", name, error.toString().replace('"', '\''));
                System.exit(1);
            }
        }
        System.exit(0);
    }

    static Properties settings(String bootstrap, Action action) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java-test");
        settings.put("security.protocol", action.text("security", "PLAINTEXT"));
        if (action.text("ca", null) != null) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", action.text("ca"));
        }
        if (action.text("cert", null) != null) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", action.text("cert"));
        }
        String mechanism = action.text("mechanism", null);
        String token = action.text("token", null);
        if (token != null) {
            String url = "file://" + token;
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            String oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLogin";
            settings.put("sasl.mechanism", "OAUTHBEARER");
            settings.put("sasl.oauthbearer.token.endpoint.url", url);
            settings.put("sasl.login.callback.handler.class", oauth + "CallbackHandler");
            settings.put("sasl.jaas.config", oauth + "Module required;");
        } else if (mechanism != null) {
            String module = mechanism.startsWith("SCRAM") ? "scram.ScramLoginModule" : "plain.PlainLoginModule";
            settings.put("sasl.mechanism", mechanism);
            settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\""
                + action.text("username") + "\" password=\"" + action.text("password") + "\";");
        }
        return settings;
    }
}
