package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
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
		settings = append(settings, kgo.SASL(o.mechanism(user, o.text("password", ""))))
	}
	if file, ok := o.values["token"]; ok {
		token, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		settings = append(settings, kgo.SASL(oauth.Auth{Token: string(token)}.AsMechanism()))
	}
	if ca, ok := o.values["ca"]; ok {
		settings = append(settings, kgo.DialTLSConfig(o.tls(ca)))
	}
	client, err := kgo.NewClient(append(settings, more...)...)
	if err != nil {
		panic(err)
	}
	return client
}

// mechanism is the one of the option mechanism, or PLAIN.
func (o options) mechanism(user, password string) sasl.Mechanism {
	switch o.text("mechanism", "PLAIN") {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

// tls trusts the certificates in a PEM file, and shows the one in the file of the option cert.
func (o options) tls(ca string) *tls.Config {
	trusted, err := os.ReadFile(ca)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if file, ok := o.values["cert"]; ok {
		own, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}
