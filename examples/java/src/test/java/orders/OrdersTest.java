package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;

/** Needs a klamm that runs: `klamm run localhost:9092`. */
class OrdersTest {
    @Test
    void anOrderSurvivesALeaderThatMoves() throws Exception {
        try (var rule = Klamm.rule("leader-moves",
                "\"api\":\"Produce\",\"topic\":\"orders\",\"error\":\"NOT_LEADER_OR_FOLLOWER\",\"times\":2")) {
            assertTrue(place("tea").offset() >= 0);
            assertEquals(2, rule.hits());
        }
    }

    @Test
    void aShopWithoutRightsIsTold() {
        try (var rule = Klamm.rule("no-rights", "\"api\":\"Produce\",\"client\":\"shop\",\"block\":true")) {
            var refused = assertThrows(ExecutionException.class, () -> place("tea"));
            assertInstanceOf(TopicAuthorizationException.class, refused.getCause());
            assertEquals(1, rule.hits());
        }
    }

    @Test
    void aMistakeInARuleIsTold() {
        var refused = assertThrows(IllegalArgumentException.class,
                () -> Klamm.rule("wrong", "\"api\":\"Prodce\",\"delay\":\"1s\""));
        assertTrue(refused.getMessage().contains("did you mean Produce?"), refused.getMessage());
    }

    private static RecordMetadata place(String item) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", Klamm.BOOTSTRAP,
                "client.id", "shop",
                "enable.idempotence", false,
                "delivery.timeout.ms", 20_000,
                "request.timeout.ms", 5_000);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            return producer.send(new ProducerRecord<>("orders", item)).get(25, TimeUnit.SECONDS);
        }
    }
}
