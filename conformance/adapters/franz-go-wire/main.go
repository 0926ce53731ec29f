// franz-go: a kgo.Client that consumes a partition to its end, and one that produces.
package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "franz-go, Client", "version": version("github.com/twmb/franz-go"), "language": "Go",
			"homepage": "https://github.com/twmb/franz-go", "issues": "https://github.com/twmb/franz-go/issues",
		},
		"features": consumerFeatures(true),
	}, map[string]func(Request) (object, error){"decode": decode, "encode": encode})
}

func decode(request Request) (object, error) {
	start := map[string]map[int32]kgo.Offset{request.Place.Topic: {0: kgo.NewOffset().At(0)}}
	options := []kgo.Opt{
		kgo.SeedBrokers(request.Place.Bootstrap), kgo.ConsumePartitions(start), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(fetchTime), kgo.FetchMaxBytes(mostSize), kgo.FetchMaxPartitionBytes(mostSize),
	}
	if !request.ChecksCrc() {
		options = append(options, kgo.DisableFetchCRCValidation())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return consumed(request, func() ([]Record, error) { return polled(client) }, nil)
}

func polled(client *kgo.Client) ([]Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	fetches := client.PollFetches(ctx)
	found := []Record{}
	fetches.EachRecord(func(one *kgo.Record) { found = append(found, recordOf(one)) })
	for _, each := range fetches.Errors() {
		if !errors.Is(each.Err, context.DeadlineExceeded) {
			return found, each.Err
		}
	}
	return found, nil
}

var compressions = []kgo.CompressionCodec{
	kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
}

func encode(request Request) (object, error) {
	return produced(request, func(codec int, messages []Message) error { return sent(request.Place, codec, messages) })
}

// sent waits for a flush, which takes everything that is there by then.
func sent(place Place, codec int, messages []Message) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(place.Bootstrap), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ManualFlushing(),
		kgo.ProducerBatchCompression(compressions[codec]), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(mostRequestSize), kgo.BrokerMaxWriteBytes(2 * mostRequestSize), kgo.RecordRetries(0),
	}
	switch place.Producer {
	case transactional:
		options = append(options, kgo.TransactionalID(place.Topic))
	case "":
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	if place.Producer == transactional {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
	}
	var failed error
	for _, each := range messages {
		record := &kgo.Record{Topic: place.Topic, Partition: 0, Key: each.Key, Value: each.Value, Timestamp: each.Time}
		for _, header := range each.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if failed == nil && place.Producer == transactional {
		return client.EndTransaction(ctx, kgo.TryCommit)
	}
	return failed
}

func recordOf(one *kgo.Record) Record {
	record := Record{Offset: Long(one.Offset), Timestamp: Long(one.Timestamp.UnixMilli()), Key: hexed(one.Key), Value: hexed(one.Value), Headers: [][2]*string{}}
	if one.Attrs.TimestampType() == -1 {
		record.Timestamp = "-1"
	}
	for _, header := range one.Headers {
		record.Headers = append(record.Headers, [2]*string{hexed([]byte(header.Key)), hexed(header.Value)})
	}
	return record
}
