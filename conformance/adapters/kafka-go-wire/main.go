// kafka-go: a Reader of one partition, to its end.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "kafka-go, Reader", "version": version("github.com/segmentio/kafka-go"), "language": "Go",
			"homepage": "https://github.com/segmentio/kafka-go", "issues": "https://github.com/segmentio/kafka-go/issues",
		},
		"features": consumerFeatures(false),
	}, map[string]func(Request) (object, error){"decode": decode})
}

func decode(request Request) (object, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{request.Place.Bootstrap}, Topic: request.Place.Topic, Partition: 0, MinBytes: 1, MaxBytes: mostSize,
		MaxWait: fetchTime, ReadLagInterval: -1, ReadBackoffMin: time.Millisecond, ReadBackoffMax: time.Millisecond,
		ReadBatchTimeout: 2 * time.Second, StartOffset: kafka.FirstOffset,
	})
	defer reader.Close()
	return consumed(request, func() ([]Record, error) { return polled(reader) })
}

func polled(reader *kafka.Reader) ([]Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	one, err := reader.ReadMessage(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record := Record{Offset: Long(one.Offset), Timestamp: millis(one.Time), Key: hexed(one.Key), Value: hexed(one.Value), Headers: [][2]*string{}}
	for _, header := range one.Headers {
		record.Headers = append(record.Headers, [2]*string{hexed([]byte(header.Key)), hexed(header.Value)})
	}
	return []Record{record}, nil
}
