// franz-go: a kgo.Client that consumes a partition to its end.
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
	}, map[string]func(Request) (object, error){"decode": decode})
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
	return consumed(request, func() ([]Record, error) { return polled(client) })
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
