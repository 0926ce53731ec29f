package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	run(map[string]func(context.Context, string, Task) (any, error){
		"records": records, "lookups": lookups, "group": group, "produce": produce,
	})
}

func records(ctx context.Context, address string, task Task) (any, error) {
	level := kgo.ReadUncommitted()
	if task.Isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	start := map[string]map[int32]kgo.Offset{task.Topic: {0: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(start), kgo.FetchIsolationLevel(level),
		kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found := []Row{}
	for last := int64(-1); last < task.Last; {
		fetches := client.PollFetches(ctx)
		for _, each := range fetches.Errors() {
			return nil, each.Err
		}
		fetches.EachRecord(func(one *kgo.Record) {
			headers := [][]any{}
			for _, header := range one.Headers {
				headers = append(headers, []any{header.Key, hexed(header.Value)})
			}
			found = append(found, Row{one.Offset, millis(one.Timestamp), hexed(one.Key), hexed(one.Value), headers})
			last = one.Offset
		})
	}
	return found, nil
}

func lookups(ctx context.Context, address string, task Task) (any, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found := []any{}
	for _, timestamp := range task.Timestamps {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Timestamp = timestamp
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = task.Topic
		topic.Partitions = append(topic.Partitions, partition)
		request := kmsg.NewPtrListOffsetsRequest()
		request.ReplicaID = -1
		request.Topics = append(request.Topics, topic)
		response, err := request.RequestWith(ctx, client)
		if err != nil {
			return nil, err
		}
		answer := response.Topics[0].Partitions[0]
		if answer.Offset < 0 {
			found = append(found, nil)
		} else {
			found = append(found, []int64{answer.Timestamp, answer.Offset})
		}
	}
	return found, nil
}

func group(ctx context.Context, address string, task Task) (any, error) {
	parts := [][]int64{}
	for _, end := range task.Ends {
		client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumerGroup(task.Group), kgo.ConsumeTopics(task.Topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if err != nil {
			return nil, err
		}
		part := []int64{}
		for len(part) == 0 || part[len(part)-1] < end-1 {
			fetches := client.PollRecords(ctx, 1)
			for _, each := range fetches.Errors() {
				return nil, each.Err
			}
			for _, one := range fetches.Records() {
				part = append(part, one.Offset)
				if err := client.CommitRecords(ctx, one); err != nil {
					return nil, err
				}
			}
		}
		client.Close()
		parts = append(parts, part)
	}
	return parts, nil
}

func produce(ctx context.Context, address string, task Task) (any, error) {
	options := []kgo.Opt{kgo.SeedBrokers(address), kgo.DefaultProduceTopic(task.Topic)}
	if !task.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	all := []*kgo.Record{}
	for number := 0; number < task.Count; number++ {
		all = append(all, kgo.StringRecord(fmt.Sprintf("%s-%d", task.Prefix, number)))
	}
	offsets := []int64{}
	for _, one := range client.ProduceSync(ctx, all...) {
		if one.Err != nil {
			return nil, one.Err
		}
		offsets = append(offsets, one.Record.Offset)
	}
	return offsets, nil
}
