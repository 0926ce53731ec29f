package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	run(map[string]func(context.Context, string, Task) (any, error){
		"records": records, "lookups": lookups, "group": group, "produce": produce,
	})
}

func records(ctx context.Context, address string, task Task) (any, error) {
	level := kafka.ReadUncommitted
	if task.Isolation == "read_committed" {
		level = kafka.ReadCommitted
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address}, Topic: task.Topic, Partition: 0, MinBytes: 1, MaxBytes: 1 << 24,
		MaxWait: 100 * time.Millisecond, IsolationLevel: level, StartOffset: kafka.FirstOffset, MaxAttempts: 1,
	})
	defer reader.Close()
	found := []Row{}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	for last := int64(-1); last < task.Last; {
		one, err := reader.ReadMessage(ctx)
		if err != nil {
			return found, nil // it goes round in circles or stands still: what it had is the answer
		}
		headers := [][]any{}
		for _, header := range one.Headers {
			headers = append(headers, []any{header.Key, hexed(header.Value)})
		}
		found = append(found, Row{one.Offset, millis(one.Time), hexed(one.Key), hexed(one.Value), headers})
		last = one.Offset
	}
	return found, nil
}

func lookups(ctx context.Context, address string, task Task) (any, error) {
	conn, err := kafka.DialLeader(ctx, "tcp", address, task.Topic, 0)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return offsetsAt(task.Timestamps, func(timestamp int64) (int64, error) {
		return conn.ReadOffset(time.UnixMilli(timestamp))
	})
}

func group(ctx context.Context, address string, task Task) (any, error) {
	parts := [][]int64{}
	for _, end := range task.Ends {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{address}, Topic: task.Topic, GroupID: task.Group, MinBytes: 1, MaxBytes: 1 << 24,
			MaxWait: 100 * time.Millisecond, StartOffset: kafka.FirstOffset,
		})
		part := []int64{}
		for len(part) == 0 || part[len(part)-1] < end-1 {
			one, err := reader.FetchMessage(ctx)
			if err != nil {
				return nil, err
			}
			part = append(part, one.Offset)
			if one.Offset == end-1 {
				if err := reader.CommitMessages(ctx, one); err != nil {
					return nil, err
				}
			}
		}
		reader.Close()
		parts = append(parts, part)
	}
	return parts, nil
}

func produce(ctx context.Context, address string, task Task) (any, error) {
	writer := &kafka.Writer{Addr: kafka.TCP(address), Topic: task.Topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	all := []kafka.Message{}
	for number := 0; number < task.Count; number++ {
		all = append(all, kafka.Message{Value: []byte(fmt.Sprintf("%s-%d", task.Prefix, number))})
	}
	if err := writer.WriteMessages(ctx, all...); err != nil {
		return nil, err
	}
	return []int64{}, writer.Close()
}
