package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (o options) producer(more ...kgo.Opt) *kgo.Client {
	return o.client(append([]kgo.Opt{
		kgo.ProduceRequestTimeout(5 * time.Second),
		kgo.RecordDeliveryTimeout(o.patience()),
	}, more...)...)
}

// send sends one record and waits for its outcome.
func send(ctx context.Context, client *kgo.Client, topic string, index int) error {
	started := time.Now()
	record, err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(index))}).First()
	if err != nil {
		return err
	}
	say(event{"event": "produced", "i": index, "partition": record.Partition, "offset": record.Offset, "ms": ms(started)})
	return nil
}

func produce(o options) {
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	settings := []kgo.Opt{kgo.RequiredAcks(acks[o.text("acks", "all")])}
	if o.text("idempotent", "false") != "true" {
		settings = append(settings, kgo.DisableIdempotentWrite())
	}
	client := o.producer(settings...)
	defer client.Close()
	ctx, cancel := o.context()
	defer cancel()
	for index := 0; index < o.number("n", 1) && ctx.Err() == nil; index++ {
		started := time.Now()
		time.Sleep(time.Duration(o.number("pause_ms", 0)) * time.Millisecond)
		if err := send(ctx, client, o.topic, index); err != nil {
			failed := failure(started, "produce", err)
			failed["i"] = index
			say(failed)
		}
	}
}

func transaction(o options) {
	client := o.producer(
		kgo.TransactionalID(o.text("id", "id")), kgo.TransactionTimeout(10*time.Second))
	defer client.Close()
	ctx, cancel := o.context()
	defer cancel()
	started := time.Now()
	if _, _, err := client.ProducerID(ctx); err != nil {
		failed := failure(started, "init", err)
		failed["abortable"] = false
		say(failed)
		return
	}
	say(event{"event": "initialised", "ms": ms(started)})
	where, started, err := transact(ctx, client, o)
	if err == nil {
		say(event{"event": "committed", "ms": ms(started)})
		return
	}
	abort(client, o, failure(started, where, err))
}

// transact gives the call that failed, when it began, and its error.
func transact(ctx context.Context, client *kgo.Client, o options) (string, time.Time, error) {
	started := time.Now()
	if err := client.BeginTransaction(); err != nil {
		return "begin", started, err
	}
	for index := 0; index < o.number("n", 1); index++ {
		started = time.Now()
		if err := send(ctx, client, o.topic, index); err != nil {
			return "produce", started, err
		}
	}
	started = time.Now()
	return "commit", started, client.EndTransaction(ctx, kgo.TryCommit)
}

// abort finds out whether failed was fatal: that is what the client says when it is asked to abort and to begin anew.
func abort(client *kgo.Client, o options, failed event) {
	ctx, cancel := o.lastly()
	defer cancel()
	started := time.Now()
	err := client.AbortBufferedRecords(ctx)
	if err == nil {
		err = client.EndTransaction(ctx, kgo.TryAbort)
	}
	if err == nil {
		err = begin(ctx, client)
	}
	// A commit that was tried ends the transaction for this client: its abort then sends nothing.
	ended := failed["where"] == "commit" && failed["error"] != kerr.OperationNotAttempted.Message
	failed["fatal"], failed["abortable"] = err != nil, err == nil && !ended
	say(failed)
	switch {
	case err != nil:
		refused := failure(started, "abort", err)
		refused["fatal"], refused["abortable"] = true, false
		say(refused)
	case !ended:
		say(event{"event": "aborted", "ms": ms(started)})
	}
}

// begin begins anew, also where the client has to ask more than once for a producer id.
func begin(ctx context.Context, client *kgo.Client) error {
	for {
		err := client.BeginTransaction()
		if err == nil || errors.As(err, new(*kerr.Error)) || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}
