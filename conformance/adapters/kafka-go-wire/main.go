// kafka-go: a Reader of one partition, to its end, and a Writer.
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
			"name": "kafka-go, Reader and Writer", "version": version("github.com/segmentio/kafka-go"), "language": "Go",
			"homepage": "https://github.com/segmentio/kafka-go", "issues": "https://github.com/segmentio/kafka-go/issues",
		},
		"features": consumerFeatures(false),
	}, map[string]func(Request) (object, error){"decode": decode, "encode": encode})
}

func encode(request Request) (object, error) {
	return produced(request, func(codec int, messages []Message) error { return sent(request.Place, codec, messages) })
}

// sent has a writer wait for as many messages as there are. Writers that share a transport share what it knows of topics.
func sent(place Place, codec int, messages []Message) error {
	if place.Producer != "" {
		return Skip{"it has no producer ids"}
	}
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: kafka.TCP(place.Bootstrap), Topic: place.Topic, MaxAttempts: 1, BatchSize: len(messages), BatchBytes: mostRequestSize,
		BatchTimeout: waitTime, ReadTimeout: waitTime, WriteTimeout: waitTime, RequiredAcks: kafka.RequireAll,
		Compression: kafka.Compression(codec), Transport: transport,
	}
	defer writer.Close()
	sending := make([]kafka.Message, len(messages))
	for i, each := range messages {
		sending[i] = kafka.Message{Key: each.Key, Value: each.Value, Time: each.Time}
		for _, header := range each.Headers {
			sending[i].Headers = append(sending[i].Headers, kafka.Header{Key: header.Key, Value: header.Value})
		}
	}
	return writer.WriteMessages(context.Background(), sending...)
}

func decode(request Request) (object, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{request.Place.Bootstrap}, Topic: request.Place.Topic, Partition: 0, MinBytes: 1, MaxBytes: mostSize,
		MaxWait: fetchTime, ReadLagInterval: -1, ReadBackoffMin: time.Millisecond, ReadBackoffMax: time.Millisecond,
		ReadBatchTimeout: 2 * time.Second, StartOffset: kafka.FirstOffset,
	})
	defer reader.Close()
	return consumed(request, func() ([]Record, error) { return polled(reader) }, reader.Offset)
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
