package main

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// event is one line on standard output: what ../drivers.py lists.
type event map[string]any

var printing sync.Mutex

func say(told event) {
	printing.Lock()
	defer printing.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		panic(err)
	}
}

func ms(since time.Time) int64 { return time.Since(since).Milliseconds() }

// fatal are the errors after which Kafka's documents say that a client is to be closed.
var fatal = []error{
	kerr.ProducerFenced,
	kerr.FencedInstanceID,
	kerr.UnsupportedVersion,
	kerr.SaslAuthenticationFailed,
	kerr.ClusterAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
}

// failure is the error event of the call where, with Kafka's name of the error where there is one.
func failure(started time.Time, where string, err error) event {
	name := err.Error()
	var named *kerr.Error
	if errors.As(err, &named) {
		name = named.Message
	}
	isFatal := false
	for _, each := range fatal {
		isFatal = isFatal || errors.Is(err, each)
	}
	return event{"event": "error", "where": where, "error": name, "message": err.Error(),
		"retriable": kerr.IsRetriable(err), "fatal": isFatal, "ms": ms(started)}
}
