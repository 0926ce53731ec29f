package main

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const fetchSize = 1 << 20

// visitFranz has fetches of a megabyte processed as its consumer does.
func visitFranz(part []byte, check bool) (Contents, error) {
	contents, decompressor := Contents{isSum: !check}, kgo.DefaultDecompressor()
	offset := int64(-1)
	for len(part) > 0 {
		end := some(part, fetchSize)
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches = part[:end]
		options := kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: max(offset, 0)}
		found, next := kgo.ProcessFetchPartition(options, &partition, decompressor, nil)
		if found.Err != nil {
			return contents, found.Err
		}
		for _, one := range found.Records {
			contents.add(one.Offset, one.Timestamp.UnixMilli(), one.Key, one.Value, len(one.Headers))
		}
		part, offset = part[end:], next
	}
	return contents, nil
}
