// What whole clients have in common, which send the records of a case to the endpoint of the suite.

package main

import "time"

const (
	waitTime        = 8 * time.Second
	mostRequestSize = 1 << 26
	transactional   = "transactional"
)

// Header of a record as a producer takes it.
type Header struct {
	Key   string
	Value []byte
}

// Message is a record as a producer takes it.
type Message struct {
	Key, Value []byte
	Time       time.Time
	Headers    []Header
}

// produced has the records of each batch sent, under a codec by its number, and answers once they have arrived. What
// was sent is seen, and told, by the endpoint.
func produced(request Request, send func(codec int, messages []Message) error) (object, error) {
	for _, batch := range request.Batches {
		messages := make([]Message, len(batch.Records))
		for i, record := range batch.Records {
			messages[i] = Message{Key: unhexed(record.Key), Value: unhexed(record.Value), Time: time.UnixMilli(record.Timestamp.Int64(-1))}
			for _, header := range record.Headers {
				messages[i].Headers = append(messages[i].Headers, Header{string(unhexed(header[0])), unhexed(header[1])})
			}
		}
		if err := send(codecID(batch.Codec), messages); err != nil {
			return nil, Refusal{Err: err}
		}
	}
	return object{}, nil
}
