// kafka-go: Conn.ReadBatch, the decoder below its Reader, over a pipe in this process.
package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	topic       = "t"
	fetch       = 1
	apiVersions = 18
)

func main() {
	serve(object{
		"implementation": object{
			"name": "kafka-go Reader", "version": version("github.com/segmentio/kafka-go"), "language": "Go",
			"homepage": "https://github.com/segmentio/kafka-go", "issues": "https://github.com/segmentio/kafka-go/issues",
		},
		"features": object{
			"magic": []int{0, 1, 2}, "codec": codecs, "crc": false, "control": "hidden", "headers": "ordered",
			"batchMeta": false, "bytesKeys": true, "partialTail": false, "errors": returnedErrors,
		},
	}, map[string]func(Request) (object, error){"decode": decode})
}

func decode(request Request) (object, error) {
	return fetchAll(request.Bytes(), fetched)
}

func fetched(data []byte, from int64) ([]Record, int64, error) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go answerAll(ours, data)
	conn := kafka.NewConnWith(theirs, kafka.ConnConfig{Topic: topic})
	conn.Seek(from, kafka.SeekAbsolute|kafka.SeekDontCheck)
	conn.SetDeadline(time.Now().Add(4 * time.Second))
	reader := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: len(data) + 1})
	records := []Record{}
	for {
		message, err := reader.ReadMessage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return records, 0, err
		}
		record := Record{Offset: Long(message.Offset), Timestamp: millis(message.Time), Key: hexed(message.Key), Value: hexed(message.Value), Headers: [][2]*string{}}
		for _, header := range message.Headers {
			record.Headers = append(record.Headers, [2]*string{hexed([]byte(header.Key)), hexed(header.Value)})
		}
		records = append(records, record)
	}
	return records, reader.Offset(), reader.Close()
}

// answerAll is the broker: versions when it is asked for them, then the data.
func answerAll(ours net.Conn, data []byte) {
	for {
		head := make([]byte, 12)
		if _, err := io.ReadFull(ours, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, ours, int64(binary.BigEndian.Uint32(head))-8); err != nil {
			return
		}
		body := append([]byte{}, head[8:12]...)
		if binary.BigEndian.Uint16(head[4:]) == apiVersions {
			body = append(body, 0, 0, 0, 0, 0, 2, 0, apiVersions, 0, 0, 0, 0, 0, fetch, 0, 0, 0, 5)
		} else {
			body = append(body, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, topic[0], 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
			body = binary.BigEndian.AppendUint64(body, 1<<62) // high watermark, last stable offset, start of the log
			body = binary.BigEndian.AppendUint64(body, 1<<62)
			body = binary.BigEndian.AppendUint64(body, 0)
			body = binary.BigEndian.AppendUint32(body, 0)
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(data))), data...)
		}
		ours.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
}
