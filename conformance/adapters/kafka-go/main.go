// kafka-go: protocol.RecordSet, which its Client uses.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "kafka-go", "version": version("github.com/segmentio/kafka-go"), "language": "Go",
			"homepage": "https://github.com/segmentio/kafka-go", "issues": "https://github.com/segmentio/kafka-go/issues",
		},
		"features": object{
			"magic": []int{0, 1, 2}, "codec": codecs, "crc": true, "control": "hidden", "headers": "ordered",
			"batchMeta": false, "bytesKeys": true, "partialTail": false, "errors": returnedErrors,
		},
	}, map[string]func(Request) (object, error){"decode": decode, "encode": encode})
}

func decode(request Request) (object, error) {
	if !request.ChecksCrc() {
		return nil, Skip{"it always verifies checksums"}
	}
	return fetchAll(request.Bytes(), fetched)
}

func fetched(data []byte, _ int64) ([]Record, int64, error) {
	sized := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	set, records := protocol.RecordSet{}, []Record{}
	if _, err := set.ReadFrom(bytes.NewReader(sized)); err != nil {
		return nil, 0, err
	}
	for set.Records != nil {
		one, err := set.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return records, 0, err
		}
		record, err := recordOf(one)
		if err != nil {
			return records, 0, err
		}
		records = append(records, record)
	}
	return records, 0, nil
}

func recordOf(one *protocol.Record) (Record, error) {
	key, err := protocol.ReadAll(one.Key)
	if err != nil {
		return Record{}, err
	}
	value, err := protocol.ReadAll(one.Value)
	record := Record{Offset: Long(one.Offset), Timestamp: millis(one.Time), Key: hexed(key), Value: hexed(value), Headers: [][2]*string{}}
	for _, header := range one.Headers {
		record.Headers = append(record.Headers, [2]*string{hexed([]byte(header.Key)), hexed(header.Value)})
	}
	return record, err
}

func encode(request Request) (object, error) {
	data := []byte{}
	for _, batch := range request.Batches {
		if err := whyUnencodable(batch); err != nil {
			return nil, err
		}
		if batch.ProducerID.Int64(-1) != -1 {
			return nil, Skip{"its encoder sets no producer"}
		}
		for i, record := range batch.Records {
			if record.Offset.Int64(0) != batch.BaseOffset.Int64(0)+int64(i) {
				return nil, Skip{"its encoder counts offsets"}
			}
		}
		one, err := encoded(batch)
		if err != nil {
			return nil, Refusal{Err: err}
		}
		data = append(data, one...)
	}
	return object{"data": *hexed(data)}, nil
}

func encoded(batch Batch) ([]byte, error) {
	records := make([]protocol.Record, len(batch.Records))
	for i, record := range batch.Records {
		records[i] = protocol.Record{
			Offset: record.Offset.Int64(0), Time: time.UnixMilli(record.Timestamp.Int64(-1)),
			Key: bytesOf(record.Key), Value: bytesOf(record.Value),
		}
		for _, header := range record.Headers {
			records[i].Headers = append(records[i].Headers, protocol.Header{Key: string(unhexed(header[0])), Value: unhexed(header[1])})
		}
	}
	set := protocol.RecordSet{Version: or(batch.Magic, 2), Attributes: protocol.Attributes(codecID(batch.Codec)), Records: protocol.NewRecordReader(records...)}
	if or(batch.IsTransactional, false) {
		set.Attributes |= protocol.Transactional
	}
	buffer := bytes.Buffer{}
	if _, err := set.WriteTo(&buffer); err != nil {
		return nil, err
	}
	data := buffer.Bytes()[4:]
	if set.Version == 2 {
		data = asStored(data, batch)
	}
	return data, nil
}

func bytesOf(text *string) protocol.Bytes {
	if text == nil {
		return nil
	}
	return protocol.NewBytes(unhexed(text))
}
