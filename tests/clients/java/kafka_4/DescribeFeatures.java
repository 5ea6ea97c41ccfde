import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;

/** The features of a cluster, as the admin client of Kafka 4.4 is told. */
final class DescribeFeatures {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("request.timeout.ms", 10_000);
        settings.put("default.api.timeout.ms", 20_000);
        try (Admin admin = Admin.create(settings)) {
            System.out.println(new TreeSet<>(
                admin.describeFeatures().featureMetadata().get().supportedFeatures().keySet()));
        }
    }
}
