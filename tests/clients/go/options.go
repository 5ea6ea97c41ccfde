package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// options are the key=value words of the command line.
type options struct {
	bootstrap, topic string
	values           map[string]string
	timeout          time.Duration
}

func newOptions(bootstrap, topic string, words []string) options {
	told := options{bootstrap: bootstrap, topic: topic, values: map[string]string{}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		told.values[key] = value
	}
	told.timeout = time.Duration(told.number("timeout_ms", 20_000)) * time.Millisecond
	return told
}

func (o options) text(name, otherwise string) string {
	if value, ok := o.values[name]; ok {
		return value
	}
	return otherwise
}

func (o options) number(name string, otherwise int) int {
	number, err := strconv.Atoi(o.text(name, strconv.Itoa(otherwise)))
	if err != nil {
		panic(err)
	}
	return number
}

// patience is how long the client is given; the rest of timeout_ms is for aborting, committing and closing.
func (o options) patience() time.Duration { return o.timeout * 3 / 4 }

func (o options) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), o.patience())
}

// lastly is for what remains to be done where the time of context is over.
func (o options) lastly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), (o.timeout-o.patience())/2)
}

// pause is what an application waits after an error.
const pause = 100 * time.Millisecond

// client has settings that show a reaction within seconds.
func (o options) client(more ...kgo.Opt) *kgo.Client {
	settings := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(o.bootstrap, ",")...),
		kgo.ClientID("franz-go-reactions"),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelDebug, nil)),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RetryTimeout(o.patience()),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.DialTimeout(5 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if user, ok := o.values["username"]; ok {
		settings = append(settings, kgo.SASL(plain.Auth{User: user, Pass: o.text("password", "")}.AsMechanism()))
	}
	client, err := kgo.NewClient(append(settings, more...)...)
	if err != nil {
		panic(err)
	}
	return client
}
