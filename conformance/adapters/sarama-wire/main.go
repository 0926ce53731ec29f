// sarama: a PartitionConsumer that reads a partition to its end.
package main

import (
	"time"

	"github.com/IBM/sarama"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "sarama, Consumer", "version": version("github.com/IBM/sarama"), "language": "Go",
			"homepage": "https://github.com/IBM/sarama", "issues": "https://github.com/IBM/sarama/issues",
		},
		"features": consumerFeatures(true),
	}, map[string]func(Request) (object, error){"decode": decode})
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = fetchTime
	config.Consumer.Fetch.Default = mostSize
	config.Consumer.Retry.Backoff = pollTime
	return config
}

func decode(request Request) (object, error) {
	if !request.ChecksCrc() {
		return nil, Skip{"it always verifies checksums"}
	}
	consumer, err := sarama.NewConsumer([]string{request.Place.Bootstrap}, settings())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(request.Place.Topic, 0, 0)
	if err != nil {
		return nil, err
	}
	defer partition.AsyncClose()
	return consumed(request, func() ([]Record, error) { return polled(partition) })
}

// polled takes what is there; messages stand before the error that follows them.
func polled(partition sarama.PartitionConsumer) ([]Record, error) {
	select {
	case one := <-partition.Messages():
		return []Record{recordOf(one)}, nil
	default:
	}
	select {
	case one := <-partition.Messages():
		return []Record{recordOf(one)}, nil
	case err := <-partition.Errors():
		return nil, err.Err
	case <-time.After(pollTime):
		return nil, nil
	}
}

func recordOf(one *sarama.ConsumerMessage) Record {
	record := Record{Offset: Long(one.Offset), Timestamp: millis(one.Timestamp), Key: hexed(one.Key), Value: hexed(one.Value), Headers: [][2]*string{}}
	for _, header := range one.Headers {
		record.Headers = append(record.Headers, [2]*string{hexed(header.Key), hexed(header.Value)})
	}
	return record
}
