// Tests of a Kafka client in Go, with faults that klamm makes. They need a klamm that runs: klamm run localhost:9092
package orders

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func place(t *testing.T, item string) error {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(klamm),
		kgo.ClientID("shop"),
		kgo.DisableIdempotentWrite(),
		kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte(item)}).FirstErr()
}

func TestAnOrderSurvivesALeaderThatMoves(t *testing.T) {
	rule := inject(t, Rule{"api": "Produce", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2})
	if err := place(t, "tea"); err != nil {
		t.Fatal(err)
	}
	if found := hits(t, rule); found != 2 {
		t.Fatalf("%d hits instead of 2", found)
	}
}

func TestAShopWithoutRightsIsTold(t *testing.T) {
	inject(t, Rule{"api": "Produce", "client": "shop", "block": true})
	if err := place(t, "tea"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("%v instead of %v", err, kerr.TopicAuthorizationFailed)
	}
}

func TestAMistakeInARuleIsTold(t *testing.T) {
	err := ask("POST", "/v1/rules", Rule{"api": "Prodce", "delay": "1s"}, nil)
	if err == nil || !strings.Contains(err.Error(), "did you mean Produce?") {
		t.Fatalf("%v", err)
	}
}
