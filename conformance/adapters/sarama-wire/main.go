// sarama: a PartitionConsumer that reads a partition to its end, and a SyncProducer.
package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "sarama, Consumer and SyncProducer", "version": version("github.com/IBM/sarama"), "language": "Go",
			"homepage": "https://github.com/IBM/sarama", "issues": "https://github.com/IBM/sarama/issues",
		},
		"features": consumerFeatures(true),
	}, map[string]func(Request) (object, error){"decode": decode, "encode": encode})
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
	return consumed(request, func() ([]Record, error) { return polled(partition) }, nil)
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

func encode(request Request) (object, error) {
	return produced(request, func(codec int, messages []Message) error { return sent(request.Place, codec, messages) })
}

// sent has a producer wait for as many messages as there are.
func sent(place Place, codec int, messages []Message) error {
	config := settings()
	config.Producer.Compression = sarama.CompressionCodec(codec)
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 0
	if place.Producer != "" {
		config.Producer.Idempotent = true
		config.Producer.Retry.Max = 1
		config.Net.MaxOpenRequests = 1
	}
	if place.Producer == transactional {
		config.Producer.Transaction.ID = place.Topic
	}
	config.Producer.MaxMessageBytes = mostRequestSize
	config.Producer.Flush.Messages = len(messages)
	config.Producer.Flush.Frequency = waitTime
	producer, err := sarama.NewSyncProducer([]string{place.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	sending := make([]*sarama.ProducerMessage, len(messages))
	for i, each := range messages {
		sending[i] = &sarama.ProducerMessage{Topic: place.Topic, Key: encoder(each.Key), Value: encoder(each.Value), Timestamp: each.Time}
		for _, header := range each.Headers {
			sending[i].Headers = append(sending[i].Headers, sarama.RecordHeader{Key: []byte(header.Key), Value: header.Value})
		}
	}
	if place.Producer == transactional {
		if err = producer.BeginTxn(); err != nil {
			return err
		}
	}
	var failed sarama.ProducerErrors
	if err = producer.SendMessages(sending); errors.As(err, &failed) {
		return failed[0].Err
	}
	if err == nil && place.Producer == transactional {
		return producer.CommitTxn()
	}
	return err
}

// encoder is null for null.
func encoder(bytes []byte) sarama.Encoder {
	if bytes == nil {
		return nil
	}
	return sarama.ByteEncoder(bytes)
}

func recordOf(one *sarama.ConsumerMessage) Record {
	record := Record{Offset: Long(one.Offset), Timestamp: millis(one.Timestamp), Key: hexed(one.Key), Value: hexed(one.Value), Headers: [][2]*string{}}
	for _, header := range one.Headers {
		record.Headers = append(record.Headers, [2]*string{hexed(header.Key), hexed(header.Value)})
	}
	return record
}
