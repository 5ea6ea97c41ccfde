package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var operations = map[string]func(context.Context, *kgo.Client, options, event) error{
	"create":   create,
	"describe": describe,
	"delete":   remove,
}

func administrate(o options) {
	client := o.client()
	defer client.Close()
	ctx, cancel := o.context()
	defer cancel()
	operation := o.text("op", "describe")
	started := time.Now()
	told := event{"event": operation + "d"}
	if err := operations[operation](ctx, client, o, told); err != nil {
		say(failure(started, operation, err))
		return
	}
	told["ms"] = ms(started)
	say(told)
}

func create(ctx context.Context, client *kgo.Client, o options, _ event) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = o.topic
	topic.NumPartitions = int32(o.number("partitions", 1))
	topic.ReplicationFactor = int16(o.number("replicas", 3))
	request.Topics = append(request.Topics, topic)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

func describe(ctx context.Context, client *kgo.Client, o options, told event) error {
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(o.topic)
	request.Topics = append(request.Topics, topic)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	leaders := make([]int32, len(answer.Topics[0].Partitions))
	for _, partition := range answer.Topics[0].Partitions {
		leaders[partition.Partition] = partition.Leader
	}
	told["leaders"] = leaders
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

func remove(ctx context.Context, client *kgo.Client, o options, _ event) error {
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames = []string{o.topic} // to version 5
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(o.topic)
	request.Topics = append(request.Topics, topic)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}
