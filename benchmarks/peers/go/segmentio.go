package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// visitSegmentio reads fetches of a megabyte; their size stands before them.
func visitSegmentio(part []byte, check bool) (Contents, error) {
	contents := Contents{isSum: !check}
	for len(part) > 0 {
		end := some(part, fetchSize)
		prefix := binary.BigEndian.AppendUint32(nil, uint32(end))
		set := protocol.RecordSet{}
		if _, err := set.ReadFrom(io.MultiReader(bytes.NewReader(prefix), bytes.NewReader(part[:end]))); err != nil {
			return contents, err
		}
		if err := visitRecords(set.Records, &contents); err != nil {
			return contents, err
		}
		part = part[end:]
	}
	return contents, nil
}

func visitRecords(records protocol.RecordReader, contents *Contents) error {
	for {
		one, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		key, err := protocol.ReadAll(one.Key)
		if err != nil {
			return err
		}
		value, err := protocol.ReadAll(one.Value)
		if err != nil {
			return err
		}
		contents.add(one.Offset, one.Time.UnixMilli(), key, value, len(one.Headers))
	}
}
