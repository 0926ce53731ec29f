// sarama: Broker.Fetch and Broker.Produce over a pipe, in this process.
package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/IBM/sarama"
)

const topic = "t"

func main() {
	serve(object{
		"implementation": object{
			"name": "sarama", "version": version("github.com/IBM/sarama"), "language": "Go",
			"homepage": "https://github.com/IBM/sarama", "issues": "https://github.com/IBM/sarama/issues",
		},
		"features": object{
			"magic": []int{0, 1, 2}, "codec": codecs, "crc": true, "control": "surfaced", "headers": "ordered",
			"batchMeta": false, "bytesKeys": true, "partialTail": false, "errors": returnedErrors,
		},
	}, map[string]func(Request) (object, error){"decode": decode, "encode": encode})
}

type pipe struct{ end net.Conn }

func (p pipe) Dial(_, _ string) (net.Conn, error) { return p.end, nil }

// connected gives a broker whose other end is ours.
func connected() (*sarama.Broker, net.Conn, error) {
	ours, theirs := net.Pipe()
	config := sarama.NewConfig()
	config.Version = sarama.V2_1_0_0
	config.ApiVersionsRequest = false
	config.Net.Proxy.Enable = true
	config.Net.Proxy.Dialer = pipe{theirs}
	broker := sarama.NewBroker("pipe:1")
	return broker, ours, broker.Open(config)
}

// request reads one request from our end: its correlation id, and what follows the header; nothing where none comes.
func request(ours net.Conn) ([]byte, []byte) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(ours, size); err != nil {
		return nil, nil
	}
	body := make([]byte, binary.BigEndian.Uint32(size))
	io.ReadFull(ours, body)
	client := int(binary.BigEndian.Uint16(body[8:]))
	return body[4:8], body[10+client:]
}

func decode(asked Request) (object, error) {
	if !asked.ChecksCrc() {
		return nil, Skip{"it always verifies checksums"}
	}
	return fetchAll(asked.Bytes(), fetched)
}

func fetched(data []byte, from int64) ([]Record, int64, error) {
	broker, ours, err := connected()
	if err != nil {
		return nil, 0, err
	}
	defer ours.Close()
	go func() {
		correlation, _ := request(ours)
		ours.Write(response(correlation, data))
	}()
	fetch := &sarama.FetchRequest{Version: 4, MaxBytes: 1 << 30}
	fetch.AddBlock(topic, 0, from, 1<<30, -1)
	found, err := broker.Fetch(fetch)
	if err != nil {
		return nil, 0, err
	}
	kept := []Record{}
	for _, set := range found.GetBlock(topic, 0).RecordsSet {
		kept = append(kept, records(set)...)
	}
	return kept, 0, nil
}

// response to a Fetch request of version 4 with one partition.
func response(correlation, data []byte) []byte {
	body := append([]byte{}, correlation...)
	body = append(body, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, topic[0], 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	body = binary.BigEndian.AppendUint64(body, 1<<62)
	body = binary.BigEndian.AppendUint64(body, 1<<62)
	body = append(body, 0xff, 0xff, 0xff, 0xff)
	body = binary.BigEndian.AppendUint32(body, uint32(len(data)))
	body = append(body, data...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// records of one set, with offsets and times as the library's consumer works them out.
func records(set *sarama.Records) []Record {
	found := []Record{}
	if set.RecordBatch != nil {
		batch := set.RecordBatch
		for _, one := range batch.Records {
			at := batch.FirstTimestamp.Add(one.TimestampDelta)
			if batch.LogAppendTime {
				at = batch.MaxTimestamp
			}
			record := Record{Long(batch.FirstOffset + one.OffsetDelta), millis(at), hexed(one.Key), hexed(one.Value), [][2]*string{}}
			for _, header := range one.Headers {
				record.Headers = append(record.Headers, [2]*string{hexed(header.Key), hexed(header.Value)})
			}
			found = append(found, record)
		}
		return found
	}
	for _, block := range set.MsgSet.Messages {
		messages := block.Messages()
		for _, one := range messages {
			offset, at := one.Offset, one.Msg.Timestamp
			if one.Msg.Version >= 1 {
				offset += block.Offset - messages[len(messages)-1].Offset
				if one.Msg.LogAppendTime {
					at = block.Msg.Timestamp
				}
			}
			found = append(found, Record{Long(offset), millis(at), hexed(one.Msg.Key), hexed(one.Msg.Value), [][2]*string{}})
		}
	}
	return found
}

func encode(asked Request) (object, error) {
	data := []byte{}
	for _, batch := range asked.Batches {
		if err := whyUnencodable(batch); err != nil {
			return nil, err
		}
		if or(batch.Magic, 2) != 2 {
			return nil, Skip{"only batches of magic 2 are asked for"}
		}
		one, err := encoded(batch)
		if err != nil {
			return nil, Refusal{Err: err}
		}
		data = append(data, asStored(one, batch)...)
	}
	return object{"data": *hexed(data)}, nil
}

func encoded(batch Batch) ([]byte, error) {
	base := batch.BaseOffset.Int64(0)
	first := time.UnixMilli(batch.Records[0].Timestamp.Int64(-1))
	built := &sarama.RecordBatch{
		Version: 2, Codec: sarama.CompressionCodec(codecID(batch.Codec)), CompressionLevel: sarama.CompressionLevelDefault,
		ProducerID: batch.ProducerID.Int64(-1), ProducerEpoch: or(batch.ProducerEpoch, -1), FirstSequence: or(batch.BaseSequence, -1),
		IsTransactional: or(batch.IsTransactional, false), FirstTimestamp: first, MaxTimestamp: first,
	}
	for _, record := range batch.Records {
		at := time.UnixMilli(record.Timestamp.Int64(-1))
		one := &sarama.Record{Key: unhexed(record.Key), Value: unhexed(record.Value), OffsetDelta: record.Offset.Int64(0) - base, TimestampDelta: at.Sub(first)}
		if at.After(built.MaxTimestamp) {
			built.MaxTimestamp = at
		}
		for _, header := range record.Headers {
			one.Headers = append(one.Headers, &sarama.RecordHeader{Key: unhexed(header[0]), Value: unhexed(header[1])})
		}
		built.LastOffsetDelta = int32(one.OffsetDelta)
		built.Records = append(built.Records, one)
	}
	return inRequest(built)
}

// inRequest is what stands in the Produce request that carries a batch.
func inRequest(batch *sarama.RecordBatch) ([]byte, error) {
	broker, ours, err := connected()
	if err != nil {
		return nil, err
	}
	sent := make(chan []byte, 1)
	go func() {
		_, body := request(ours)
		ours.Close()
		sent <- body
	}()
	produce := &sarama.ProduceRequest{Version: 3, RequiredAcks: sarama.WaitForAll, Timeout: 1000}
	produce.AddBatch(topic, 0, batch)
	_, failure := broker.Produce(produce)
	var refused sarama.PacketEncodingError
	if errors.As(failure, &refused) {
		ours.Close()
		return nil, failure
	}
	// transactional id, acks, timeout, topics, name, partitions, partition, size
	return (<-sent)[2+2+4+4+2+len(topic)+4+4+4:], nil
}
