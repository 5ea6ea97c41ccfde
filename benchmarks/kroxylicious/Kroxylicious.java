import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;
import java.io.FileInputStream;

/** Runs Kroxylicious until a signal ends it. Argument: its configuration file. */
public class Kroxylicious {
    public static void main(String[] arguments) throws Exception {
        var parser = new ConfigParser();
        try (var file = new FileInputStream(arguments[0])) {
            var configuration = parser.parseConfiguration(file);
            new KafkaProxy(parser, configuration, Features.defaultFeatures()).startup().block();
        }
    }
}
