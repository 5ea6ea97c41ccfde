package main

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consume is a member of a group: it reads and commits, and tells what happens to it.
func consume(o options) {
	began := time.Now()
	resets := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset()}
	levels := map[string]kgo.IsolationLevel{
		"read_uncommitted": kgo.ReadUncommitted(), "read_committed": kgo.ReadCommitted()}
	moved := func(name string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			partitions := append([]int32{}, topics[o.topic]...)
			sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
			say(event{"event": name, "partitions": partitions, "ms": ms(began)})
		}
	}
	client := o.client(
		kgo.ConsumerGroup(o.text("group", "group")),
		kgo.ConsumeTopics(o.topic),
		kgo.ConsumeResetOffset(resets[o.text("reset", "earliest")]),
		kgo.FetchIsolationLevel(levels[o.text("isolation", "read_uncommitted")]),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.SessionTimeout(6*time.Second),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(moved("assigned")),
		kgo.OnPartitionsRevoked(moved("revoked")),
		kgo.OnPartitionsLost(moved("lost")),
	)
	defer client.Close()
	ctx, cancel := o.context()
	defer cancel()

	errorsLeft := o.number("errors", 5)
	failed := func(where string, err error) {
		errorsLeft--
		say(failure(began, where, err))
		time.Sleep(pause)
	}
	records := 0
	poll := func(ctx context.Context) {
		fetches := client.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, ctx.Err()) {
				failed("poll", err)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			records++
			say(event{"event": "record", "partition": record.Partition, "offset": record.Offset,
				"value": string(record.Value), "ms": ms(began)})
		})
	}
	for records < o.number("n", 1) && ctx.Err() == nil && errorsLeft > 0 {
		poll(ctx)
	}
	for records > 0 && errorsLeft > 0 {
		if len(client.UncommittedOffsets()) > 0 {
			last, stop := o.lastly()
			err := client.CommitUncommittedOffsets(last)
			stop()
			if err == nil {
				say(event{"event": "committed", "ms": ms(began)})
				return
			}
			failed("commit", err)
		}
		if ctx.Err() != nil {
			return
		}
		short, stop := context.WithTimeout(context.Background(), pause)
		poll(short)
		stop()
	}
}
