// Consumers that hand out what they have read and report damage with the next fetch: here is the next fetch.

package main

import (
	"encoding/binary"
	"strings"
)

// decoding gives the records of a fetch response that was asked for an offset, and the offset to ask for next; 0 where
// the records tell it.
type decoding func(data []byte, from int64) ([]Record, int64, error)

// fetchAll fetches, as a consumer does, until there is an error, or nothing more comes.
func fetchAll(data []byte, decode decoding) (object, error) {
	batch, from := Batch{Records: []Record{}}, int64(0)
	for {
		records, next, err := decode(data, from)
		for _, record := range records {
			offset := record.Offset.Int64(0)
			if from == 0 || offset >= from {
				batch.Records = append(batch.Records, record)
			}
			next = max(next, offset+1)
		}
		if err != nil {
			return nil, Refusal{Err: err, Batches: []Batch{batch}}
		}
		rest := served(data, next)
		if len(rest) == 0 || len(rest) == len(data) {
			return object{"batches": []Batch{batch}}, nil
		}
		data, from = rest, next
	}
}

// served is what a broker sends when an offset is asked for: from the first entry that ends there or above. An entry
// that is not whole is the end of the log, and so are zeros; a size that cannot be is left to the library.
func served(data []byte, offset int64) []byte {
	for len(data) >= 17 {
		last, size := int64(binary.BigEndian.Uint64(data)), int(int32(binary.BigEndian.Uint32(data[8:])))
		if size < 14 {
			return []byte(strings.TrimRight(string(data), "\x00"))
		}
		if len(data) < 12+size {
			return nil
		}
		if data[16] >= 2 && size >= 49 {
			last += int64(int32(binary.BigEndian.Uint32(data[23:])))
		}
		if last >= offset {
			return data
		}
		data = data[12+size:]
	}
	return nil
}
