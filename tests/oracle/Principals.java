import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.Base64;
import java.util.HexFormat;
import javax.net.ssl.SSLSession;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.auth.SslAuthenticationContext;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** One line of hex in, a Name in DER; one line of Base64 out, the principal that Kafka makes of it. */
final class Principals {
    public static void main(String[] arguments) throws Exception {
        var builder = new DefaultKafkaPrincipalBuilder(null, SslPrincipalMapper.fromRules("DEFAULT"));
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            var name = new X500Principal(HexFormat.of().parseHex(line));
            var session = (SSLSession) Proxy.newProxyInstance(
                Principals.class.getClassLoader(), new Class<?>[] {SSLSession.class}, (proxy, method, values) -> {
                    if (method.getName().equals("getPeerPrincipal")) {
                        return name;
                    }
                    throw new UnsupportedOperationException(method.getName());
                });
            var context = new SslAuthenticationContext(session, InetAddress.getLoopbackAddress(), "SSL");
            String principal = builder.build(context).toString();
            System.out.println(Base64.getEncoder().encodeToString(principal.getBytes("UTF-8")));
        }
    }
}
