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

	afterTime  = time.Second
	mostErrors = 3
)

// consumerFeatures tells what every client here can do and show: it hides batches and control records.
func consumerFeatures(checksCrc bool) object {
	return object{
		"magic": []int{0, 1, 2}, "codec": codecs, "crc": checksCrc, "control": "hidden", "headers": "ordered",
		"batchMeta": false, "bytesKeys": true, "partialTail": false, "afterError": true,
		"errors": returnedErrors,
	}
}

// consumed gathers what a client hands out. When it has asked for what follows the last record, or for the same offset
// again and again, a file appears; what it hands out after that was in its buffers, so that nothing more is the end.
// Where a case asks for it, the client goes on after its first error; position is nil if it does not tell where it stands.
func consumed(request Request, poll func() ([]Record, error), position func() int64) (object, error) {
	batch := Batch{Records: []Record{}}
	for {
		_, missing := os.Stat(request.Place.Ended)
		records, err := poll()
		batch.Records = append(batch.Records, records...)
		if err != nil {
			refusal := Refusal{Err: err, Batches: []Batch{batch}}
			if request.Options.AfterError {
				refusal.After = wentOn(request.Place.Ended, poll, position)
			}
			return nil, refusal
		}
		if len(records) == 0 && missing == nil {
			return object{"batches": []Batch{batch}}, nil
		}
	}
}

// wentOn gathers what a client hands out after an error, until there are more errors, or nothing comes.
func wentOn(ended string, poll func() ([]Record, error), position func() int64) *After {
	after := &After{Records: []Record{}}
	for errors, end := 0, time.Now().Add(afterTime); errors < mostErrors && time.Now().Before(end); {
		_, missing := os.Stat(ended)
		records, err := poll()
		after.Records = append(after.Records, records...)
		if err != nil {
			errors++
		} else if len(records) == 0 && missing == nil {
			break
		}
	}
	if position != nil {
		after.Position = Long(position())
	}
	return after
}
