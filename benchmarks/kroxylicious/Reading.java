import io.kroxylicious.proxy.filter.Filter;
import io.kroxylicious.proxy.filter.FilterContext;
import io.kroxylicious.proxy.filter.FilterFactory;
import io.kroxylicious.proxy.filter.FilterFactoryContext;
import io.kroxylicious.proxy.filter.RequestFilter;
import io.kroxylicious.proxy.filter.RequestFilterResult;
import io.kroxylicious.proxy.filter.ResponseFilter;
import io.kroxylicious.proxy.filter.ResponseFilterResult;
import io.kroxylicious.proxy.plugin.Plugin;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;

/** Makes filters that take every request and every response, decoded, and forward it as it is. */
@Plugin(configType = Void.class)
public class Reading implements FilterFactory<Void, Void> {
    @Override
    public Void initialize(FilterFactoryContext context, Void config) {
        return null;
    }

    @Override
    public Filter createFilter(FilterFactoryContext context, Void config) {
        return new Reader();
    }

    private static class Reader implements RequestFilter, ResponseFilter {
        @Override
        public CompletionStage<RequestFilterResult> onRequest(
                ApiKeys api, RequestHeaderData header, ApiMessage request, FilterContext context) {
            return context.forwardRequest(header, request);
        }

        @Override
        public CompletionStage<ResponseFilterResult> onResponse(
                ApiKeys api, ResponseHeaderData header, ApiMessage response, FilterContext context) {
            return context.forwardResponse(header, response);
        }
    }
}
