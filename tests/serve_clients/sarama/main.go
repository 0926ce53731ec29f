package main

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

func main() {
	run(map[string]func(context.Context, string, Task) (any, error){
		"records": records, "lookups": lookups, "group": group, "produce": produce,
	})
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 100_000_000
	return config
}

func records(ctx context.Context, address string, task Task) (any, error) {
	config := settings()
	if task.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{address}, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(task.Topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	found := []Row{}
	for last := int64(-1); last < task.Last; {
		select {
		case one := <-partition.Messages():
			headers := [][]any{}
			for _, header := range one.Headers {
				headers = append(headers, []any{string(header.Key), hexed(header.Value)})
			}
			found = append(found, Row{one.Offset, millis(one.Timestamp), hexed(one.Key), hexed(one.Value), headers})
			last = one.Offset
		case err := <-partition.Errors():
			return nil, err.Err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return found, nil
}

func lookups(_ context.Context, address string, task Task) (any, error) {
	client, err := sarama.NewClient([]string{address}, settings())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return offsetsAt(task.Timestamps, func(timestamp int64) (int64, error) {
		return client.GetOffset(task.Topic, 0, timestamp)
	})
}

type member struct {
	end  int64
	part *[]int64
	stop context.CancelFunc
}

func (member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for one := range claim.Messages() {
		*m.part = append(*m.part, one.Offset)
		session.MarkMessage(one, "")
		if one.Offset >= m.end-1 {
			session.Commit()
			m.stop()
			return nil
		}
	}
	return nil
}

func group(ctx context.Context, address string, task Task) (any, error) {
	parts := [][]int64{}
	for _, end := range task.Ends {
		joined, err := sarama.NewConsumerGroup([]string{address}, task.Group, settings())
		if err != nil {
			return nil, err
		}
		part := []int64{}
		consuming, stop := context.WithCancel(ctx)
		if err := joined.Consume(consuming, []string{task.Topic}, member{end, &part, stop}); err != nil {
			return nil, err
		}
		stop()
		joined.Close()
		parts = append(parts, part)
	}
	return parts, nil
}

func produce(_ context.Context, address string, task Task) (any, error) {
	config := settings()
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = task.Idempotent
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	all, offsets := []*sarama.ProducerMessage{}, []int64{}
	for number := 0; number < task.Count; number++ {
		value := sarama.StringEncoder(fmt.Sprintf("%s-%d", task.Prefix, number))
		all = append(all, &sarama.ProducerMessage{Topic: task.Topic, Value: value})
	}
	if err := producer.SendMessages(all); err != nil {
		return nil, err
	}
	for _, one := range all {
		offsets = append(offsets, one.Offset)
	}
	return offsets, nil
}
