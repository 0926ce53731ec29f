// What whole clients have in common, which fetch a case from the endpoint of the suite.

package main

import (
	"os"
	"time"
)

const (
	pollTime  = 20 * time.Millisecond
	fetchTime = 50 * time.Millisecond
	mostSize  = 1 << 26
)

// consumerFeatures tells what every client here can do and show: it hides batches and control records.
func consumerFeatures(checksCrc bool) object {
	return object{
		"magic": []int{0, 1, 2}, "codec": codecs, "crc": checksCrc, "control": "hidden", "headers": "ordered",
		"batchMeta": false, "bytesKeys": true, "partialTail": false,
	}
}

// consumed gathers what a client hands out. When it has asked for what follows the last record, or for the same offset
// again and again, a file appears; what it hands out after that was in its buffers, so that nothing more is the end.
func consumed(request Request, poll func() ([]Record, error)) (object, error) {
	batch := Batch{Records: []Record{}}
	for {
		_, missing := os.Stat(request.Place.Ended)
		records, err := poll()
		batch.Records = append(batch.Records, records...)
		if err != nil {
			return nil, Refusal{err, []Batch{batch}}
		}
		if len(records) == 0 && missing == nil {
			return object{"batches": []Batch{batch}}, nil
		}
	}
}
